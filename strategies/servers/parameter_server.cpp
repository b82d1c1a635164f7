// Steps are emitted one after another, and in each of them worker by worker; who is served first is
// the engine's business. Buffers are those of a real run, so that verify() can say that nobody
// reads what another may be writing.
#include "strategies/servers/parameter_server.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "sim/base/error.hpp"
#include "strategies/fold/step_network.hpp"
#include "strategies/plan/imperfections.hpp"
#include "strategies/servers/server_ways.hpp"

namespace rehearse {

namespace {

constexpr Buffer gradients = ServerBuffers::gradients, parameters = ServerBuffers::parameters,
                 state = ServerBuffers::state, inbox = ServerBuffers::inbox,
                 outbox = ServerBuffers::outbox, sums = ServerBuffers::sums;
using Work = ServerNote::Work;

class ServerLowering {
 public:
  ServerLowering(const ServerPlan& plan, Routing& routing, bool fold, bool notes)
      : plan_{plan},
        notes_{notes},
        waits_{plan.how.mode == ServerMode::synchronous},
        payload_{message_protocol(routing.topology()).payload},
        imperfections_{plan.imperfection, routing.topology().rank_count()},
        days_(routing.topology().rank_count()) {
    const bool alike = fold && plan.how.sharding == ServerSharding::even && same_devices(routing);
    ways_ = connect_servers(out_.program, plan.workers, plan.servers, routing, alike);
    out_.servers = ways_.servers;
    out_.stands_for = ways_.stands_for;
    const std::size_t messages = plan.workers.size() * ways_.servers * plan.buckets.size();
    pulls_.resize(messages, no_op);
    applies_.resize(messages, no_op);
    reads_.resize(messages, no_op);
    requests_.resize(plan.workers.size() * ways_.servers, no_op);
    out_.steps.resize(plan.workers.size());
    name_all();
    lay_out();
  }

  ServerProgram run() {
    const std::size_t workers = plan_.workers.size(), steps = plan_.how.steps;
    const std::size_t buckets = plan_.buckets.size(), servers = ways_.servers;
    const std::size_t each = 2 + 2 * buckets + 2 * servers + 4 * buckets * servers;
    out_.program.reserve(workers * steps * each, workers * steps * (each + buckets * servers));
    for (step_ = 0; step_ < steps; ++step_) {
      for (std::uint32_t w = 0; w < workers; ++w) train(w);
      if (waits_) apply_sums();
      for (std::uint32_t w = 0; w < workers; ++w) answer(w);
      if (plan_.how.mode == ServerMode::bounded) note_progress();
    }
    if (notes_) out_.notes.resize(out_.program.size());
    return std::move(out_);
  }

 private:
  static constexpr Stream queue = queue_lane(0);

  bool same_devices(const Routing& routing) const {
    const Topology& topology = routing.topology();
    const auto device = [&](Rank rank) { return topology[topology.device_of(rank)].accelerator; };
    return std::all_of(plan_.servers.begin(), plan_.servers.end(), [&](Rank rank) {
      return device(rank) == device(plan_.servers.front()) && !imperfections_.perturbs(rank);
    });
  }

  // Jitter is drawn for each stretch of kernels, and for each thing that a server does.
  Compute on(Rank rank, Time planned) {
    if (!imperfections_.perturbs(rank)) return {.fixed = planned};
    Day& day = days_[index(rank)];
    const Time taken = imperfections_.kernel(rank, day.stretches++, planned), before = day.worked;
    day.worked += taken;
    return {.fixed = taken + imperfections_.pauses(rank, before, day.worked)};
  }

  void name_all() {
    Program& program = out_.program;
    forward_ = program.name("forward"), backward_ = program.name("backward");
    middle_ = program.name("micro-batches"), push_ = program.name("push");
    apply_ = program.name("apply"), add_ = program.name("add"), ack_ = program.name("ack");
    request_ = program.name("request"), read_ = program.name("read"), pull_ = program.name("pull");
    done_ = program.name("step"), bound_ = program.name("all workers");
  }

  // Where each part lies: at a worker behind one another, at a server too, with a box a worker.
  void lay_out() {
    Bytes at_worker;
    std::vector<Bytes> at_server(ways_.servers);
    for (const ServerBucket& bucket : plan_.buckets)
      for (std::size_t s = 0; s < ways_.servers; ++s) {
        const Bytes size = std::max(bucket.parts[s].pushed, bucket.parts[s].pulled);
        out_.buffers.at_worker.push_back(at_worker);
        out_.buffers.at_server.push_back(at_server[s]);
        at_worker += size;
        at_server[s] += size;
      }
    out_.buffers.box = *std::max_element(at_server.begin(), at_server.end());
  }

  std::size_t part_number(std::size_t bucket, std::size_t server) const {
    return bucket * ways_.servers + server;
  }
  std::size_t message(std::uint32_t w, std::size_t bucket, std::size_t server) const {
    return w * plan_.buckets.size() * ways_.servers + part_number(bucket, server);
  }
  Label label(std::uint32_t name) const { return {name, static_cast<std::uint32_t>(step_)}; }
  Bytes wire(Bytes size) const {
    return Bytes{
        static_cast<std::int64_t>(std::ceil(static_cast<double>(size.count()) / payload_))};
  }
  Slice at_worker(Buffer buffer, std::size_t part, Bytes size) const {
    return {buffer, out_.buffers.at_worker[part], size};
  }
  Slice at_server(Buffer buffer, std::uint32_t w, std::size_t part, Bytes size) const {
    return {buffer, out_.buffers.at_server[part] + static_cast<std::int64_t>(w) * out_.buffers.box,
            size};
  }

  template <class Visit>
  void for_each_part(Visit visit) const {
    for (std::size_t b = 0; b < plan_.buckets.size(); ++b)
      for (std::size_t s = 0; s < ways_.servers; ++s)
        if (plan_.buckets[b].parts[s].parameters > 0) visit(b, s, plan_.buckets[b].parts[s]);
  }

  void touch(std::size_t bucket, bool makes_gradients) {
    for (std::size_t s = 0; s < ways_.servers; ++s) {
      const ServerPart& part = plan_.buckets[bucket].parts[s];
      const std::size_t number = part_number(bucket, s);
      accesses_.push_back({at_worker(parameters, number, part.pulled), false});
      if (makes_gradients) accesses_.push_back({at_worker(gradients, number, part.pushed), true});
    }
  }

  OpId kernel(std::uint32_t w, std::uint32_t name, Time time, std::size_t bucket) {
    accesses_.clear();
    touch(bucket, name != forward_);
    return note(work(w, name, time), {.work = name == forward_ ? Work::forward : Work::backward,
                                      .worker = w,
                                      .bucket = static_cast<std::uint32_t>(bucket)});
  }

  OpId note(OpId id, ServerNote what) {
    if (!notes_) return id;
    what.step = static_cast<std::uint32_t>(step_);
    out_.notes.resize(out_.program.size());
    out_.notes[index(id)] = what;
    return id;
  }
  static ServerNote of_part(Work work, std::uint32_t w, std::size_t b, std::size_t s) {
    return {.work = work,
            .worker = w,
            .bucket = static_cast<std::uint32_t>(b),
            .server = static_cast<std::uint32_t>(s)};
  }

  // A stretch of a worker's kernels, after what is in after_.
  OpId work(std::uint32_t w, std::uint32_t name, Time time) {
    const Rank rank = plan_.workers[w];
    return out_.program.add_compute(rank, Stream::compute, label(name), on(rank, time), after_,
                                    accesses_);
  }

  // The kernels of a worker's step, and what it sends when they are done.
  void train(std::uint32_t w) {
    const std::uint32_t kind = plan_.kind[w];
    const std::size_t buckets = plan_.buckets.size();
    OpId first = no_op, last = no_op;
    for (std::size_t b = buckets; b-- > 0;) {
      after_.clear();
      for (std::size_t s = 0; s < ways_.servers; ++s)
        if (const OpId pull = pulls_[message(w, b, s)]; pull != no_op) after_.push_back(pull);
      last = kernel(w, forward_, plan_.buckets[b].forward[kind], b);
      if (first == no_op) first = last;
    }
    after_.clear();
    if (plan_.microbatches > 1) {  // those between the first forward and the last backward pass
      Time time;
      for (const ServerBucket& bucket : plan_.buckets)
        time += static_cast<std::int64_t>(plan_.microbatches - 1) *
                (bucket.forward[kind] + bucket.backward[kind]);
      accesses_.clear();
      for (std::size_t b = 0; b < buckets; ++b) touch(b, true);
      note(work(w, middle_, time), {.work = Work::middle, .worker = w});
    }
    for (std::size_t b = 0; b < buckets; ++b) {
      after_.clear();
      last = kernel(w, backward_, plan_.buckets[b].backward[kind], b);
      push(w, b, last);
    }
    out_.steps[w].push_back({first, last});
    for (std::size_t s = 0; s < ways_.servers; ++s) ask(w, s, last);
  }

  void push(std::uint32_t w, std::size_t b, OpId computed) {
    for (std::size_t s = 0; s < ways_.servers; ++s) {
      const ServerPart& part = plan_.buckets[b].parts[s];
      if (part.parameters == 0) continue;
      const std::size_t number = part_number(b, s);
      const Slice from = at_worker(gradients, number, part.pushed),
                  to = at_server(inbox, w, number, part.pushed);
      const OpId sent = out_.program.add_transfer(
          comm_lane(s), label(push_), transfer(ways_.to(w, s), from, to), std::array{computed});
      serve_push(w, b, s, part, sent);
    }
  }

  static Transfer moved(ConnectionId way, const Slice& from, const Slice& to) {
    return {.connection = way,
            .source_buffer = from.buffer,
            .target_buffer = to.buffer,
            .combine = Combine::overwrite,
            .source_offset = from.offset,
            .target_offset = to.offset,
            .size = from.size,
            .wire = from.size};
  }
  Transfer transfer(ConnectionId way, const Slice& from, const Slice& to) const {
    Transfer work = moved(way, from, to);
    work.wire = wire(from.size);
    return work;
  }

  // The update itself, or its part of the sum of all workers.
  void serve_push(std::uint32_t w, std::size_t b, std::size_t s, const ServerPart& part,
                  OpId sent) {
    const std::size_t number = part_number(b, s), at = message(w, b, s);
    const std::array<Access, 2> accesses{
        Access{at_server(inbox, w, number, part.pushed), false},
        Access{at_server(waits_ ? sums : state, 0, number, part.pushed), true}};
    applies_[at] = out_.program.add_compute(
        plan_.servers[s], queue, label(waits_ ? add_ : apply_),
        on(plan_.servers[s], waits_ ? part.accumulate : part.apply), std::array{sent}, accesses);
    note(applies_[at], of_part(waits_ ? Work::add : Work::apply, w, b, s));
    if (waits_) return;
    note_update(w, b, s, applies_[at]);
  }

  void note_update(std::uint32_t w, std::size_t b, std::size_t s, OpId apply) {
    out_.updates.push_back({.worker = w,
                            .step = static_cast<std::uint32_t>(step_),
                            .bucket = static_cast<std::uint32_t>(b),
                            .server = static_cast<std::uint32_t>(s),
                            .apply = apply,
                            .read = reads_[message(w, b, s)]});
  }

  // An acknowledgement first, or at once behind the last push.
  void ask(std::uint32_t w, std::size_t s, OpId computed) {
    OpId told = computed;
    if (plan_.how.protocol == ServerProtocol::request_response && holds_any(s)) {
      const std::array after{applies_[message(w, 0, s)]};
      told = out_.program.add_transfer(answers(w), label(ack_), {.connection = ways_.from(w, s)},
                                       after);
    }
    requests_[w * ways_.servers + s] = out_.program.add_transfer(
        comm_lane(s), label(request_), {.connection = ways_.to(w, s)}, std::array{told});
  }

  bool holds_any(std::size_t s) const { return plan_.buckets.front().parts[s].parameters > 0; }

  // Servers send to each worker on a lane of its own, beside the lanes of a worker on that rank.
  Stream answers(std::uint32_t w) const { return comm_lane(ways_.servers + w); }

  // Once the gradients of all workers are in.
  void apply_sums() {
    for_each_part([&](std::size_t b, std::size_t s, const ServerPart& part) {
      after_.clear();
      for (std::uint32_t w = 0; w < plan_.workers.size(); ++w)
        after_.push_back(applies_[message(w, b, s)]);
      const std::size_t number = part_number(b, s);
      const std::array<Access, 2> accesses{
          Access{at_server(sums, 0, number, part.pushed), true},
          Access{at_server(state, 0, number, std::max(part.pushed, part.pulled)), true}};
      const OpId applied =
          out_.program.add_compute(plan_.servers[s], queue, label(apply_),
                                   on(plan_.servers[s], part.apply), after_, accesses);
      note(applied, of_part(Work::apply_sum, 0, b, s));
      for (std::uint32_t w = 0; w < plan_.workers.size(); ++w) {
        applies_[message(w, b, s)] = applied;
        note_update(w, b, s, applied);
      }
    });
  }

  // Parameters, in the order in which the forward pass needs them.
  void answer(std::uint32_t w) {
    OpId last = no_op;
    ends_.clear();
    for (std::size_t b = plan_.buckets.size(); b-- > 0;)
      for (std::size_t s = 0; s < ways_.servers; ++s) {
        const ServerPart& part = plan_.buckets[b].parts[s];
        if (part.parameters == 0) continue;
        const std::size_t number = part_number(b, s), at = message(w, b, s);
        reads_[at] = read(w, b, s, part);
        // All workers are sent the same by a synchronous server, others have a copy of their own.
        const Slice from = waits_ ? at_server(state, 0, number, part.pulled)
                                  : at_server(outbox, w, number, part.pulled);
        last = out_.program.add_transfer(
            answers(w), label(pull_),
            transfer(ways_.from(w, s), from, at_worker(parameters, number, part.pulled)),
            waits_ ? std::span<const OpId>{after_} : std::span<const OpId>{&reads_[at], 1});
        pulls_[at] = last;
        ends_.push_back(last);
      }
    out_.steps[w].back().end =
        out_.program.add_marker(plan_.workers[w], Stream::copy, label(done_), ends_);
  }

  // Whom the answer waits for is left in after_; the copy that it sends, if it needs one.
  OpId read(std::uint32_t w, std::size_t b, std::size_t s, const ServerPart& part) {
    const std::size_t number = part_number(b, s), at = message(w, b, s);
    after_ = {requests_[w * ways_.servers + s], applies_[at]};
    if (waits_) return applies_[at];
    const std::size_t ahead = plan_.how.staleness.value_or(0);
    if (plan_.how.mode == ServerMode::bounded && step_ >= ahead)
      after_.push_back(bounds_[(step_ - ahead) * ways_.servers + s]);
    const std::array<Access, 2> accesses{Access{at_server(state, 0, number, part.pulled), false},
                                         Access{at_server(outbox, w, number, part.pulled), true}};
    const OpId copied = out_.program.add_compute(plan_.servers[s], queue, label(read_),
                                                 on(plan_.servers[s], part.read), after_, accesses);
    return note(copied, of_part(Work::read, w, b, s));
  }

  // Every worker's update of this step is in, on each server.
  void note_progress() {
    for (std::size_t s = 0; s < ways_.servers; ++s) {
      after_.clear();
      for (std::uint32_t w = 0; w < plan_.workers.size(); ++w)
        for (std::size_t b = 0; b < plan_.buckets.size(); ++b)
          if (applies_[message(w, b, s)] != no_op) after_.push_back(applies_[message(w, b, s)]);
      const auto workers = static_cast<std::uint32_t>(plan_.workers.size());
      bounds_.push_back(
          out_.program.add_marker(plan_.servers[s], answers(workers), label(bound_), after_));
    }
  }

  const ServerPlan& plan_;
  const bool notes_, waits_;
  const double payload_;
  const Imperfections imperfections_;
  struct Day {
    std::uint64_t stretches = 0;  // of its work so far, and how long they took
    Time worked;
  };
  std::vector<Day> days_;  // by rank
  ServerProgram out_;
  ServerWays ways_;
  std::size_t step_ = 0;
  std::uint32_t forward_ = 0, backward_ = 0, middle_ = 0, push_ = 0, apply_ = 0, add_ = 0, ack_ = 0,
                request_ = 0, read_ = 0, pull_ = 0, done_ = 0, bound_ = 0;  // names
  std::vector<OpId> applies_, reads_, pulls_;  // the latest of each message
  std::vector<OpId> requests_;                 // the latest, by worker and server
  std::vector<OpId> bounds_;                   // by step and server
  std::vector<OpId> after_, ends_;
  std::vector<Access> accesses_;
};

}  // namespace

ServerProgram lower_servers(const ServerPlan& plan, Routing& routing, bool fold, bool notes) {
  return ServerLowering(plan, routing, fold, notes).run();
}

}  // namespace rehearse
