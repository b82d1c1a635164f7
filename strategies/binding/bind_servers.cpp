// Workers run the pieces of their layers from the plan's tapes; servers have three kinds of work.
#include "strategies/binding/bind_servers.hpp"

#include <algorithm>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "strategies/binding/feeds.hpp"
#include "strategies/binding/update_calls.hpp"

namespace rehearse {

namespace {

using Work = ServerNote::Work;

// Where each layer begins at a worker: buckets as they are pushed, in each the parts of the
// servers one behind the other.
std::vector<std::int64_t> layer_begins(const ServerPlan& plan, const ServerProgram& lowered,
                                       const PieceTable& pieces) {
  const std::size_t servers = plan.servers.size();
  const bool whole_layers = plan.how.sharding == ServerSharding::layers;
  std::vector<std::int64_t> begins(plan.owner.size());
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    std::vector<std::int64_t> next;
    for (std::size_t s = 0; s < servers; ++s)
      next.push_back(lowered.buffers.at_worker[b * servers + s].count() / 4);
    for (const std::uint32_t layer : plan.buckets[b].layers) {
      std::int64_t& begin = next[whole_layers ? plan.owner[layer] : 0];
      begins[layer] = begin;
      begin += pieces[layer].parameters;
    }
  }
  return begins;
}

class ServerBinder {
 public:
  ServerBinder(const ServerPlan& plan, const ServerProgram& lowered, const StepPlan& step,
               const Workload& workload, const TrainingNumbers& numbers)
      : plan_{plan},
        lowered_{lowered},
        step_{step},
        numbers_{numbers},
        end_{length_at_worker()},
        model_{.workload = workload,
               .how = sharding_of(workload, step.scenario.parallelism, step.scenario.training),
               .layout = {workload,
                          sharding_of(workload, step.scenario.parallelism, step.scenario.training),
                          layer_begins(plan, lowered, step.layers), end_.count() / 4},
               .buffers = BufferBook{ServerBuffers::count},
               .recompute = step.scenario.parallelism.recompute,
               .written = {}} {
    model_.buffers.set(StateKind::gradients, 0, ServerBuffers::gradients);
    model_.buffers.set(StateKind::parameters, 0, ServerBuffers::parameters);
    const auto all = static_cast<std::int64_t>(step.batch.global) * sample_length(model_);
    const bool waits = plan.how.mode == ServerMode::synchronous;
    loss_count_ = all;
    model_.dropout = step.scenario.training.dropout;
    model_.seed = numbers.seed;
    model_.sample_weight =
        (waits ? 1.0 : static_cast<double>(plan.workers.size())) / static_cast<double>(all);
  }

  BoundStep run() {
    Program program = lowered_.program;
    for (std::size_t i = 0; i < program.size(); ++i) {
      const ServerNote& note = lowered_.notes[i];
      if (note.work == Work::none) continue;
      const CallList calls = calls_of(note);
      program.bind_compute(static_cast<OpId>(i), calls.accesses(), calls.calls());
    }
    BoundStep bound{.step = step_of_servers(program, lowered_), .layout = model_.layout};
    bound.steps = static_cast<std::uint32_t>(plan_.how.steps);
    bound.loss_count = loss_count_;
    for (std::uint32_t w = 0; w < plan_.workers.size(); ++w) describe_worker(w, bound);
    for (std::size_t b = 0; b < plan_.buckets.size(); ++b)
      for (std::size_t s = 0; s < plan_.servers.size(); ++s) describe_part(b, s, bound);
    return bound;
  }

 private:
  std::size_t number(std::size_t bucket, std::size_t server) const {
    return bucket * plan_.servers.size() + server;
  }
  Bytes size_of(std::size_t bucket, std::size_t server) const {
    return Bytes{4 * plan_.buckets[bucket].parts[server].parameters};
  }
  Bytes length_at_worker() const {
    const std::size_t b = plan_.buckets.size() - 1, s = plan_.servers.size() - 1;
    return lowered_.buffers.at_worker[number(b, s)] + size_of(b, s);
  }
  std::uint32_t microbatches() const { return static_cast<std::uint32_t>(plan_.microbatches); }

  std::int64_t first_sample(std::uint32_t worker, std::uint32_t microbatch) const {
    return (static_cast<std::int64_t>(worker) * microbatches() + microbatch) *
           model_.how.micro_batch;
  }

  CallList calls_of(const ServerNote& note) {
    if (note.work > Work::backward) return serve(note);
    CallList calls;
    const std::uint32_t first = note.step * microbatches();
    if (note.work == Work::forward) {
      if (note.bucket + 1 == plan_.buckets.size()) model_.written.clear();  // a step begins
      pass(note, first, true, plan_.buckets[note.bucket].layers, calls);
    } else if (note.work == Work::backward) {
      pass(note, first + microbatches() - 1, false, plan_.buckets[note.bucket].layers, calls);
      // The worker's own steps: masks are others in the next one.
      if (note.bucket + 1 == plan_.buckets.size())
        calls.add(Kernel::count_step, {model_.buffers.of_rank("state", Bytes{64})});
    } else {
      std::vector<std::uint32_t> all(model_.layout.layers());
      for (std::uint32_t l = 0; l < all.size(); ++l) all[l] = model_.layout.layers() - 1 - l;
      for (std::uint32_t m = 0; m + 1 < microbatches(); ++m) {
        pass(note, first + m, false, all, calls);
        pass(note, first + m + 1, true, all, calls);
      }
    }
    return calls;
  }

  // Layers come from the last one on, which is the order of the backward pass.
  void pass(const ServerNote& note, std::uint32_t microbatch, bool forward,
            std::span<const std::uint32_t> layers, CallList& calls) {
    const StageWork& work = step_.works.front();
    const Tape& tape = forward ? work.forward : work.backward;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::uint32_t layer = layers[forward ? layers.size() - 1 - i : i];
      const bool again =
          !forward && model_.recompute == Recompute::full && step_.layers[layer].recomputes;
      PieceSite site{model_,
                     {.rank = plan_.workers[note.worker],
                      .layer = layer,
                      .microbatch = microbatch,
                      .again = again,
                      .backward = !forward,
                      .first_sample = first_sample(note.worker, microbatch % microbatches())}};
      const std::size_t place = forward ? layer : model_.layout.layers() - 1 - layer;
      for (std::uint32_t k = place == 0 ? 0 : tape.layer_end[place - 1]; k < tape.layer_end[place];
           ++k)
        bind_pieces(site, step_.pieces[tape.steps[k].piece].name);
      calls.append(site.calls);
    }
  }

  // A worker's own box, or what all share.
  Slice at_server(Buffer buffer, const ServerNote& note, std::uint32_t box = 0) const {
    return {buffer,
            lowered_.buffers.at_server[number(note.bucket, note.server)] +
                static_cast<std::int64_t>(box) * lowered_.buffers.box,
            size_of(note.bucket, note.server)};
  }
  Slice moment(std::string_view name, const ServerNote& note) {
    return at_server(model_.buffers.of_rank(name, lowered_.buffers.box).buffer, note);
  }
  Slice state(const ServerNote& note) {
    const std::size_t parts = plan_.buckets.size() * plan_.servers.size();
    const Slice all =
        model_.buffers.of_rank("states of parts", Bytes{static_cast<std::int64_t>(64 * parts)});
    return {all.buffer, Bytes{static_cast<std::int64_t>(64 * number(note.bucket, note.server))},
            Bytes{64}};
  }

  CallList serve(const ServerNote& note) {
    CallList calls;
    const Slice parameters = at_server(ServerBuffers::state, note);
    const Slice inbox = at_server(ServerBuffers::inbox, note, note.worker);
    const Slice sums = at_server(ServerBuffers::sums, note);
    if (note.work == Work::read) {
      calls.add(Kernel::copy, {parameters, at_server(ServerBuffers::outbox, note, note.worker)});
    } else if (note.work == Work::add) {
      calls.add(Kernel::add_into, {inbox, sums});
    } else {
      apply(note, parameters, note.work == Work::apply ? inbox : sums, calls);
      if (note.work == Work::apply_sum) calls.add(Kernel::zero, {sums});
    }
    return calls;
  }

  void apply(const ServerNote& note, const Slice& w, const Slice& g, CallList& calls) {
    const Slice counts = state(note);
    switch (step_.scenario.training.optimizer) {
      case OptimizerKind::sgd:
        calls.add(Kernel::sgd, {w, g, counts}, {}, {numbers_.learning_rate});
        break;
      case OptimizerKind::momentum:
        calls.add(Kernel::momentum, {w, g, moment("first moment", note), counts}, {},
                  {numbers_.learning_rate, numbers_.momentum});
        break;
      default:
        calls.add(Kernel::adam,
                  {w, g, moment("first moment", note), moment("second moment", note), counts}, {},
                  {numbers_.learning_rate, numbers_.beta1, numbers_.beta2, numbers_.epsilon});
    }
    calls.add(Kernel::count_step, {counts});
  }

  void describe_worker(std::uint32_t w, BoundStep& bound) {
    const Rank rank = plan_.workers[w];
    bound.states.emplace_back(rank, model_.buffers.of_rank("state", Bytes{64}));
    bound.persistent.push_back(bound.states.back());
    bound.persistent.emplace_back(rank, Slice{ServerBuffers::parameters, Bytes{0}, end_});
    for (std::uint32_t step = 0; step < bound.steps; ++step)
      for (std::uint32_t m = 0; m < microbatches(); ++m)
        for (const bool first : {true, false})
          add_feed(model_,
                   {.rank = rank,
                    .microbatch = step * microbatches() + m,
                    .step = step,
                    .first_sample = first_sample(w, m)},
                   first, bound);
    for (std::uint32_t l = 0; l < model_.layout.layers(); ++l)
      for (std::uint32_t t = 0; t < model_.layout.tensors(l).size(); ++t)
        bound.copies.push_back(
            {l, t, rank, 0, model_.buffers.state(StateKind::parameters, model_.layout.run(l, t)),
             0});
  }

  // A server's part of a bucket: the tensors in it, the moments beside them, its counts.
  void describe_part(std::size_t b, std::size_t s, BoundStep& bound) {
    const Rank rank = plan_.servers[s];
    const ServerNote note{.bucket = static_cast<std::uint32_t>(b),
                          .server = static_cast<std::uint32_t>(s)};
    const Slice here = at_server(ServerBuffers::state, note);
    if (here.size == Bytes{0}) return;
    bound.states.emplace_back(rank, state(note));
    bound.persistent.push_back(bound.states.back());
    bound.persistent.emplace_back(rank, here);
    const OptimizerKind optimizer = step_.scenario.training.optimizer;
    if (optimizer != OptimizerKind::sgd)
      bound.persistent.emplace_back(rank, moment("first moment", note));
    if (optimizer == OptimizerKind::adam)
      bound.persistent.emplace_back(rank, moment("second moment", note));
    const Run part{0, lowered_.buffers.at_worker[number(b, s)].count() / 4, here.size.count() / 4};
    for (std::uint32_t l = 0; l < model_.layout.layers(); ++l)
      for (std::uint32_t t = 0; t < model_.layout.tensors(l).size(); ++t) {
        const Run whole = model_.layout.run(l, t), mine = overlap(whole, part);
        if (mine.size == 0) continue;
        const Slice slice{here.buffer, here.offset + Bytes{4 * (mine.begin - part.begin)},
                          Bytes{4 * mine.size}};
        bound.owned.push_back({l, t, rank, 0, slice, mine.begin - whole.begin});
        bound.copies.push_back(bound.owned.back());
      }
  }

  const ServerPlan& plan_;
  const ServerProgram& lowered_;
  const StepPlan& step_;
  const TrainingNumbers& numbers_;
  const Bytes end_;  // of a worker's parameters
  BindingModel model_;
  std::int64_t loss_count_ = 1;
};

Phase phase_of(const ServerNote& note) {
  switch (note.work) {
    case Work::forward:
      return Phase::forward;
    case Work::middle:
    case Work::backward:
      return Phase::backward;
    default:
      return Phase::optimizer;
  }
}

}  // namespace

StepProgram step_of_servers(const Program& program, const ServerProgram& lowered) {
  StepProgram step{.program = program};
  step.tags.resize(program.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Op& op = program.ops()[i];
    OpTag& tag = step.tags[i];
    tag.phase = phase_of(lowered.notes[i]);
    tag.communicates = op.kind == WorkKind::transfer;
    if (!tag.communicates) continue;
    tag.phase = program.names()[op.label.name] == "push" ? Phase::gradients : Phase::parameters;
    tag.dimension = Dimension::data;
    tag.bytes = program.transfer(op).size;
  }
  return step;
}

BoundServers bound_servers_of(const Scenario& scenario, const Workload& workload,
                              const Topology& topology, const CostModel& cost,
                              const TrainingNumbers& numbers) {
  ServerPlan plan = plan_servers(scenario, workload, topology, cost);
  const StepPlan step =
      plan_step(scenario, workload, plan.workers.size(), accelerator_of(topology), cost);
  std::vector<Problem> problems;
  for (std::string& problem : binding_problems(step, workload))
    problems.push_back({{}, std::move(problem)});
  if (!problems.empty()) throw InputError(std::move(problems));
  Routing routing{topology};
  ServerProgram lowered = lower_servers(plan, routing, false, true);
  BoundStep bound = ServerBinder(plan, lowered, step, workload, numbers).run();
  return {std::move(plan), std::move(lowered), std::move(bound)};
}

std::vector<ServerProgram::Update> applied_order(const ServerProgram& lowered,
                                                 const Timeline& timeline) {
  std::vector<ServerProgram::Update> order = lowered.updates;
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return timeline.spans[index(a.apply)].begin < timeline.spans[index(b.apply)].begin;
  });
  return order;
}

}  // namespace rehearse
