// The event loop. An op is ready when the ops it names and the one before it on its stream have
// ended; it ends after its own time, or when its share of contended links has carried its bytes.
//
// All events of one instant are taken together, and rates are solved once after the last of them,
// so neither order nor number of simultaneous events can change an answer.
#include "sim/fast_simulator.hpp"

#include <algorithm>
#include <vector>

#include "sim/cost_model.hpp"
#include "sim/deadlock.hpp"
#include "sim/error.hpp"
#include "sim/event_queue.hpp"
#include "sim/physics.hpp"
#include "sim/sharing.hpp"

namespace rehearse {

namespace {

/// An op ends, or its transfer reaches its links, or the flow that carries it runs out.
struct Event {
  static constexpr std::uint32_t ends = 0, joins = 1;  // else: the version of a flow's finish
  std::uint32_t id;                                    // of the op, or of the flow
  std::uint32_t kind;
};

/// Who waits for whom: for each op the ops that name it, and the next one on its stream.
struct Waiters {
  LargeVector<std::uint32_t> pending;  // ends still missing, by op
  LargeVector<std::uint32_t> begin;    // waiters of op i: [begin[i], begin[i + 1])
  LargeVector<OpId> waiters;
  LargeVector<OpId> next;  // on the same stream

  explicit Waiters(const Program& program)
      : pending(program.size()), begin(program.size() + 2), next(program.size(), no_op) {
    for (std::size_t i = 0; i < program.size(); ++i)
      for (const OpId input : program.after(static_cast<OpId>(i))) ++begin[index(input) + 2];
    for (std::size_t i = 2; i < begin.size(); ++i) begin[i] += begin[i - 1];
    waiters.resize(begin.back());
    StreamEnds last(program);
    for (std::size_t i = 0; i < program.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      const std::span<const OpId> after = program.after(id);
      for (const OpId input : after) waiters[begin[index(input) + 1]++] = id;
      OpId& before = last.of(program[id]);
      pending[i] = static_cast<std::uint32_t>(after.size()) + (before != no_op);
      if (before != no_op) next[index(before)] = id;
      before = id;
    }
  }

 private:
  /// The latest op of every (rank, stream), in a dense table.
  struct StreamEnds {
    std::size_t streams = 0;
    std::vector<OpId> table;
    explicit StreamEnds(const Program& program) {
      std::size_t ranks = 0;
      for (const Program::Op& op : program.ops()) {
        ranks = std::max(ranks, index(op.rank) + 1);
        streams = std::max(streams, index(op.stream) + 1);
      }
      table.assign(ranks * streams, no_op);
    }
    OpId& of(const Program::Op& op) { return table[index(op.rank) * streams + index(op.stream)]; }
  };
};

class Run {
 public:
  Run(const Program& program, Routing& routing, const CostModel& cost)
      : program_{program},
        topology_{routing.topology()},
        cost_{cost},
        paths_{program, routing},
        sharing_{program, paths_, topology_},
        network_{sharing_.capacities(), sharing_.longest()},
        waiting_{program} {
    timeline_.spans.resize(program.size());
    carried_.resize(program.connections().size());
  }

  Timeline run() {
    for (std::size_t i = 0; i < program_.size(); ++i)
      if (waiting_.pending[i] == 0) begin(static_cast<OpId>(i), no_op);
    while (true) {
      if (!queue_.due_now() && network_.has_changes()) solve();
      if (queue_.empty()) break;
      queue_.pop_batch(batch_);
      timeline_.events += batch_.size();
      for (const auto& entry : batch_) handle(entry.payload);
    }
    if (ended_ < program_.size()) throw CheckFailed(waiting_cycle(program_, finished()));
    finish_timeline();
    check_physics(program_, paths_, topology_, timeline_);
    return std::move(timeline_);
  }

 private:
  void handle(Event event) {
    if (event.kind == Event::ends) return end(static_cast<OpId>(event.id));
    if (event.kind == Event::joins) return join(static_cast<OpId>(event.id));
    FlowNetwork::Ended ended;
    if (!network_.end(static_cast<FlowId>(event.id), event.kind, ended)) return;
    note_contention(static_cast<OpId>(ended.tag), ended.held_by);
    end(static_cast<OpId>(ended.tag));
  }

  void begin(OpId id, OpId blocker) {
    const Program::Op& op = program_[id];
    timeline_.spans[index(id)] = {now(), now(), blocker};
    switch (op.kind) {
      case WorkKind::marker:
        return schedule(now(), Event::ends, id);
      case WorkKind::compute:
        return begin_compute(id, op);
      case WorkKind::transfer:
        return begin_transfer(id, program_.transfer(op));
      case WorkKind::collective:
        ASSERT(!"collectives are expanded before a program is simulated");
    }
  }

  void begin_compute(OpId id, const Program::Op& op) {
    const Time alone = compute_alone(op);
    const auto unit = sharing_.compute(op.rank);
    if (unit.empty() || alone == Time{}) return schedule(now() + alone, Event::ends, id);
    network_.start(tag(id), alone.seconds().count(), 1, unit, now());
  }

  void begin_transfer(OpId id, const Transfer& transfer) {
    const Time latency = paths_.latency(transfer.connection);
    carried_[index(transfer.connection)] += transfer.wire;
    if (sharing_.crossings(transfer.connection).empty() || transfer.wire == Bytes{0})
      return schedule(now() + latency + wire_time(transfer), Event::ends, id);
    if (latency == Time{}) return join(id);
    schedule(now() + latency, Event::joins, id);
  }

  void join(OpId id) {
    const Transfer& transfer = program_.transfer(program_[id]);
    network_.start(tag(id), static_cast<double>(transfer.wire.count()),
                   sharing_.limit(transfer.connection), sharing_.crossings(transfer.connection),
                   now());
  }

  void end(OpId id) {
    timeline_.spans[index(id)].end = now();
    ++ended_;
    const OpId next = waiting_.next[index(id)];
    if (next != no_op) release(next, id);
    for (std::uint32_t w = waiting_.begin[index(id)]; w < waiting_.begin[index(id) + 1]; ++w)
      release(waiting_.waiters[w], id);
  }

  void release(OpId id, OpId blocker) {
    if (--waiting_.pending[index(id)] == 0) begin(id, blocker);
  }

  void solve() {
    finishes_.clear();
    network_.solve(now(), finishes_);
    for (const FlowNetwork::Finish& finish : finishes_)
      queue_.push(finish.time, {static_cast<std::uint32_t>(index(finish.flow)), finish.version});
  }

  void note_contention(OpId id, std::uint32_t held_by) {
    const Program::Op& op = program_[id];
    const Time alone =
        op.kind == WorkKind::compute
            ? compute_alone(op)
            : paths_.latency(program_.transfer(op).connection) + wire_time(program_.transfer(op));
    const Time lost = now() - timeline_.spans[index(id)].begin - alone;
    if (lost <= Time::picoseconds(1)) return;  // a rounding, not a wait
    const LinkId link = held_by == FlowNetwork::own_limit ? no_link : sharing_.link(held_by);
    timeline_.contentions.push_back({id, lost, link});
  }

  Time compute_alone(const Program::Op& op) const {
    const Device& device = topology_[topology_.device_of(op.rank)];
    static const Accelerator unknown;
    const Accelerator& accelerator = device.accelerator < topology_.accelerators.size()
                                         ? topology_.accelerators[device.accelerator]
                                         : unknown;
    return duration_of(program_.compute(op), accelerator, cost_);
  }

  Time wire_time(const Transfer& transfer) const {
    if (transfer.wire == Bytes{0}) return Time{};
    return Time::round(transfer.wire / paths_.rate_alone(transfer.connection));
  }

  void finish_timeline() {
    timeline_.makespan = Time{};
    for (const Timeline::Span& span : timeline_.spans)
      timeline_.makespan = std::max(timeline_.makespan, span.end);
    std::sort(timeline_.contentions.begin(), timeline_.contentions.end(),
              [](const auto& a, const auto& b) { return a.op < b.op; });
    timeline_.link_bytes.assign(topology_.links().size(), Bytes{0});
    for (std::size_t c = 0; c < carried_.size(); ++c)
      for (const Paths::Crossing& crossing : paths_.crossings(static_cast<ConnectionId>(c)))
        timeline_.link_bytes[index(crossing.link)] += crossing.weight * carried_[c];
  }

  std::vector<bool> finished() const {
    std::vector<bool> done(program_.size());
    for (std::size_t i = 0; i < done.size(); ++i) done[i] = waiting_.pending[i] == 0;
    return done;
  }

  void schedule(Time time, std::uint32_t kind, OpId id) { queue_.push(time, {tag(id), kind}); }
  static std::uint32_t tag(OpId id) { return static_cast<std::uint32_t>(index(id)); }
  Time now() const { return queue_.now(); }

  const Program& program_;
  const Topology& topology_;
  const CostModel& cost_;
  const Paths paths_;
  const Sharing sharing_;
  FlowNetwork network_;
  Waiters waiting_;
  EventQueue<Event> queue_;
  Timeline timeline_;
  std::vector<Bytes> carried_;  // by connection
  std::size_t ended_ = 0;

  std::vector<EventQueue<Event>::Entry> batch_;
  std::vector<FlowNetwork::Finish> finishes_;
};

}  // namespace

Timeline FastSimulator::run(const Program& program) { return Run(program, routing_, cost_).run(); }

}  // namespace rehearse
