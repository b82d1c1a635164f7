// The event loop. An op is ready when the ops it names have ended and its stream is free: the op
// before it there has ended, or has sent its last byte if it is posted. It ends after its own time,
// or when its share of contended links has carried its bytes. On a queue what has been ready
// longest is next; that is decided when an instant is over, so that all who became ready in it are
// there.
//
// All events of one instant are taken together, and rates are solved once after the last of them,
// so neither order nor number of simultaneous events can change an answer. Where no resource can
// ever be short, every op's time is known beforehand; then the program's own order serves as well
// as a queue, and costs half of it.
#include "sim/engine/fast_simulator.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/engine/alone.hpp"
#include "sim/engine/compute_units.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/physics.hpp"
#include "sim/engine/served_queues.hpp"
#include "sim/engine/sharing.hpp"
#include "sim/engine/totals.hpp"
#include "sim/program/deadlock.hpp"
#include "sim/program/stream_table.hpp"

namespace rehearse {

namespace {

/// Op by op, each after all that it waits for. False when an op waits for a later one.
bool run_in_order(const Program& program, const Alone& alone, Timeline& timeline) {
  const StreamTable streams(program);
  struct Lane {
    OpId last = no_op;
    Time free;
  };
  std::vector<Lane> lanes(streams.size());
  const std::span spans(timeline.spans);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = program[id];
    Lane& lane = lanes[streams.number(op.rank, op.stream)];
    OpId blocker = lane.last;
    Time begin = lane.free;
    for (const OpId input : program.after(id)) {
      if (input >= id) return false;
      if (blocker == no_op || spans[index(input)].end > begin)
        blocker = input, begin = spans[index(input)].end;
    }
    const Time end = begin + alone(op);
    spans[i] = {begin, end, blocker};
    lane = {id, end - alone.flight(op)};
  }
  timeline.events = program.size();
  return true;
}

/// An op ends, or its transfer reaches its links, or has left them and is in flight, or the flow
/// that carries it runs out.
struct Event {
  static constexpr std::uint32_t ends = 0, joins = 1, leaves = 2;  // else: a flow's version
  static constexpr std::uint32_t computed = UINT32_MAX;            // the kernel of a rank
  std::uint32_t id;                                                // of the op, flow or rank
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
    const StreamTable streams(program);
    std::vector<OpId> last(streams.size(), no_op);
    for (std::size_t i = 0; i < program.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      const std::span<const OpId> after = program.after(id);
      for (const OpId input : after) waiters[begin[index(input) + 1]++] = id;
      pending[i] = static_cast<std::uint32_t>(after.size());
      if (is_queue(program[id].stream)) continue;
      OpId& before = last[streams.number(program[id].rank, program[id].stream)];
      pending[i] += before != no_op;
      if (before != no_op) next[index(before)] = id;
      before = id;
    }
  }
};

class EventLoop {
 public:
  EventLoop(const Program& program, const Paths& paths, const Sharing& sharing, ComputeUnits& units,
            const Alone& alone, Timeline& timeline)
      : program_{program},
        paths_{paths},
        sharing_{sharing},
        units_{units},
        alone_{alone},
        timeline_{timeline},
        network_{sharing.capacities(), sharing.longest(), FlowNetwork::Tells::next},
        waiting_{program},
        queues_{program} {
    if (paths.any_gap()) bursts_done_.resize(program.size());
  }

  void run() {
    for (std::size_t i = 0; i < program_.size(); ++i)
      if (waiting_.pending[i] == 0) ready(static_cast<OpId>(i), no_op);
    while (true) {
      if (!queue_.due_now() && queues_.may_serve())
        queues_.serve(now(), [this](OpId id, OpId blocker) { begin(id, blocker); });
      if (!queue_.due_now() && network_.has_changes()) solve();
      if (queue_.empty()) break;
      queue_.pop_batch(batch_);
      timeline_.events += batch_.size();
      for (const auto& entry : batch_) handle(entry.payload);
    }
    if (ended_ < program_.size()) throw CheckFailed(waiting_cycle(program_, finished()));
    std::sort(timeline_.contentions.begin(), timeline_.contentions.end(),
              [](const auto& a, const auto& b) { return a.op < b.op; });
  }

 private:
  void handle(Event event) {
    if (event.kind == Event::ends) return end(static_cast<OpId>(event.id));
    if (event.kind == Event::joins) return join(static_cast<OpId>(event.id));
    if (event.kind == Event::leaves) return leave(static_cast<OpId>(event.id));
    if (event.kind == Event::computed) return end_kernel(static_cast<Rank>(event.id));
    FlowNetwork::Ended ended;
    if (!network_.end(static_cast<FlowId>(event.id), event.kind, ended)) return;
    const auto id = static_cast<OpId>(ended.tag);
    if (has_more_bursts(id)) return;
    note_contention(id, ended.held_by);
    if (alone_.flight(program_[id]) == Time{}) return end(id);
    leave(id);
  }

  void ready(OpId id, OpId blocker) {
    if (is_queue(program_[id].stream)) return queues_.add(program_[id], id, now(), blocker);
    begin(id, blocker);
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
        ASSERT(op.kind != WorkKind::collective);  // expanded before a program is simulated
    }
  }

  void begin_compute(OpId id, const Program::Op& op) {
    const Time alone = alone_.compute(op);
    if (units_.slows(op.rank)) return expect_end(op.rank, units_.begin(op.rank, id, alone, now()));
    const auto unit = sharing_.compute(op.rank);
    if (unit.empty() || alone == Time{}) return schedule(now() + alone, Event::ends, id);
    network_.start(tag(id), alone.seconds().count(), 1, unit, now());
  }

  void expect_end(Rank rank, Time end) {
    queue_.push(end, {static_cast<std::uint32_t>(index(rank)), Event::computed});
  }

  void end_kernel(Rank rank) {
    if (const std::optional<OpId> op = units_.end(rank, now())) end(*op);
  }

  void begin_transfer(OpId id, const Transfer& transfer) {
    for (const Rank rank : units_.slowed(transfer.connection))
      if (const auto end = units_.take(rank, now())) expect_end(rank, *end);
    const Time lead = paths_.lead(transfer.connection), flight = paths_.flight(transfer.connection);
    if (sharing_.crossings(transfer.connection).empty() || transfer.wire == Bytes{0})
      return schedule(now() + alone_.transfer(transfer) - flight,
                      flight == Time{} ? Event::ends : Event::leaves, id);
    if (lead == Time{}) return join(id);
    schedule(now() + lead, Event::joins, id);
  }

  void join(OpId id) {
    const Transfer& transfer = program_.transfer(program_[id]);
    const std::int64_t wire = transfer.wire.count() / paths_.bursts(transfer.connection);
    network_.start(tag(id), static_cast<double>(wire), sharing_.limit(transfer.connection),
                   sharing_.crossings(transfer.connection), now());
  }

  /// After a burst: the next one comes when the gap is over.
  bool has_more_bursts(OpId id) {
    if (!paths_.any_gap() || program_[id].kind != WorkKind::transfer) return false;
    const ConnectionId connection = program_.transfer(program_[id]).connection;
    if (++bursts_done_[index(id)] == paths_.bursts(connection)) return false;
    schedule(now() + paths_.gap(connection), Event::joins, id);
    return true;
  }

  void leave(OpId id) {
    schedule(now() + alone_.flight(program_[id]), Event::ends, id);
    free_stream(id);
  }

  void free_stream(OpId id) {
    const Program::Op& op = program_[id];
    if (op.kind == WorkKind::transfer)
      for (const Rank rank : units_.slowed(program_.transfer(op).connection))
        if (const auto end = units_.give_back(rank, now())) expect_end(rank, *end);
    if (is_queue(op.stream)) return queues_.free(op, id);
    const OpId next = waiting_.next[index(id)];
    if (next != no_op) release(next, id);
  }

  void end(OpId id) {
    timeline_.spans[index(id)].end = now();
    ++ended_;
    if (alone_.flight(program_[id]) == Time{}) free_stream(id);
    for (std::uint32_t w = waiting_.begin[index(id)]; w < waiting_.begin[index(id) + 1]; ++w)
      release(waiting_.waiters[w], id);
  }

  void release(OpId id, OpId blocker) {
    if (--waiting_.pending[index(id)] == 0) ready(id, blocker);
  }

  void solve() {
    finishes_.clear();
    network_.solve(now(), finishes_);
    for (const FlowNetwork::Finish& finish : finishes_)
      queue_.push(finish.time, {static_cast<std::uint32_t>(index(finish.flow)), finish.version});
  }

  void note_contention(OpId id, std::uint32_t held_by) {
    const Program::Op& op = program_[id];
    const Time lost = now() + alone_.flight(op) - timeline_.spans[index(id)].begin - alone_(op);
    if (lost <= Time::picoseconds(1)) return;  // a rounding, not a wait
    const LinkId link = held_by == FlowNetwork::own_limit ? no_link : sharing_.link(held_by);
    timeline_.contentions.push_back({id, lost, link});
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
  const Paths& paths_;
  const Sharing& sharing_;
  ComputeUnits& units_;
  const Alone& alone_;
  Timeline& timeline_;
  FlowNetwork network_;
  Waiters waiting_;
  ServedQueues queues_;
  EventQueue<Event> queue_;
  std::size_t ended_ = 0;
  std::vector<std::uint32_t> bursts_done_;  // by op; empty where nothing comes in bursts

  std::vector<EventQueue<Event>::Entry> batch_;
  std::vector<FlowNetwork::Finish> finishes_;
};

}  // namespace

Timeline FastSimulator::run(const Program& program) {
  const Topology& topology = routing_.topology();
  const Paths paths(program, routing_);
  const Sharing sharing(program, paths, topology);
  const Alone alone(program, paths, topology, cost_);
  ComputeUnits units(program, topology);
  Timeline timeline;
  timeline.spans.resize(program.size());
  const bool all_alone = sharing.capacities().empty() && units.empty() && !program.has_queues();
  if (!all_alone || !run_in_order(program, alone, timeline))
    EventLoop(program, paths, sharing, units, alone, timeline).run();
  add_up(program, paths, topology, timeline);
  check_physics(program, paths, topology, timeline);
  return timeline;
}

}  // namespace rehearse
