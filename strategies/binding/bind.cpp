// Op by op, in the order of the program: what is it, whose is it, which slices
// does it touch.
#include "strategies/binding/bind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "strategies/binding/feeds.hpp"
#include "strategies/binding/update_calls.hpp"
#include "strategies/fold/step_network.hpp"
#include "strategies/methods/local_sgd.hpp"
#include "strategies/methods/lower.hpp"

namespace rehearse {

namespace {

class Binder {
 public:
  Binder(const StepPlan& plan, const Workload& workload, StepProgram step,
         const TrainingNumbers& numbers)
      : plan_{plan},
        step_{std::move(step)},
        numbers_{numbers},
        model_{.workload = workload,
               .how = sharding_of(workload, plan.scenario.parallelism, plan.scenario.training),
               .layout = {plan, workload,
                          sharding_of(workload, plan.scenario.parallelism, plan.scenario.training)},
               .buffers = BufferBook{stored_numbers(plan.scenario.training)},
               .recompute = plan.scenario.parallelism.recompute,
               .written = {}},
        ownership_{plan, step_, model_.layout} {
    model_.gradients_apart = plan.scenario.parallelism.zero_stage >= 2 && ownership_.is_cut() &&
                             plan.schedule.microbatches > 1;
    model_.dropout = plan.scenario.training.dropout;
    model_.seed = numbers.seed;
    count_ = static_cast<std::int64_t>(plan.batch.global) * sample_length(model_);
    model_.sample_weight = 1 / static_cast<double>(count_);
  }

  BoundStep run() {
    for (std::size_t i = 0; i < step_.program.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      if (i == 0 || step_.notes[i].step != step_.notes[i - 1].step) begin_step(step_.notes[i].step);
      const Program::Op& op = step_.program[id];
      if (op.kind == WorkKind::compute) bind_compute(id, op);
      if (op.kind == WorkKind::transfer) bind_message(id, op);
      if (op.kind == WorkKind::collective) bind_collective(id, op);
    }
    step_.program.drop_unused_collectives();
    BoundStep bound{.step = std::move(step_), .layout = model_.layout};
    bound.loss_count = count_;
    bound.scales_loss = plan_.scenario.training.loss_scaling == LossScaling::dynamic;
    bound.steps = static_cast<std::uint32_t>(schedule_.size());
    for (std::size_t r = 0; r < plan_.placement.world(); ++r) describe(static_cast<Rank>(r), bound);
    return bound;
  }

 private:
  // A step of local SGD takes the mean over the samples of its own replica.
  void begin_step(std::uint32_t step) {
    kind_ = schedule_[step];
    const std::size_t apart = kind_ == LocalStep::synchronous ? 1 : plan_.size(Family::replicas);
    model_.sample_weight = static_cast<double>(apart) / static_cast<double>(count_);
    model_.written.clear();
    summed_.clear();
  }

  // Steps in a row have buffers of their own, too.
  std::uint32_t microbatch(OpId id) const {
    return step_.notes[index(id)].step * plan_.schedule.microbatches +
           step_.tags[index(id)].microbatch;
  }

  std::int64_t first_sample(const Coordinates& at, std::uint32_t microbatch) const {
    return (static_cast<std::int64_t>(at.data) * plan_.schedule.microbatches + microbatch) *
           model_.how.micro_batch;
  }

  PieceSite site(OpId id, Rank rank) {
    const OpNote& note = step_.notes[index(id)];
    const OpTag& tag = step_.tags[index(id)];
    const std::uint32_t layer = model_.layout.first_layer(tag.stage) + note.layer;
    const bool backward = tag.phase != Phase::forward;
    const bool again =
        backward && model_.recompute == Recompute::full && plan_.layers[layer].recomputes;
    const Coordinates at = plan_.placement.coordinates(rank);
    return {model_,
            {.rank = rank,
             .tensor_place = at.tensor,
             .layer = layer,
             .microbatch = microbatch(id),
             .again = again,
             .backward = backward,
             .first_sample = first_sample(at, tag.microbatch)}};
  }

  UpdateSite update_site(Rank rank) {
    const auto pipeline_rank =
        static_cast<std::uint32_t>(plan_.placement.coordinates(rank).pipeline);
    return {
        model_, plan_, ownership_, numbers_, rank, pipeline_rank, kind_ == LocalStep::averaging};
  }

  // Fused kernels run one after the other.
  void bind_compute(OpId id, const Program::Op& op) {
    const std::string_view name = step_.program.names()[op.label.name];
    if (step_.notes[index(id)].purpose != Purpose::layer) {
      UpdateSite update = update_site(op.rank);
      if (summed_.insert(op.rank).second) update.sum_microbatches();
      if (step_.notes[index(id)].purpose == Purpose::compress)
        update.bind_compressed(name, compressed(id), sorts_of(op, name));
      else
        update.bind(name);
      return step_.program.bind_compute(id, update.calls.accesses(), update.calls.calls());
    }
    PieceSite piece = site(id, op.rank);
    bind_pieces(piece, name);
    ASSERT(!piece.calls.empty());
    step_.program.bind_compute(id, piece.calls.accesses(), piece.calls.calls());
  }

  // The same slice on both ends. Under sequence parallelism each tensor rank
  // sends its own rows.
  void bind_message(OpId id, const Program::Op& op) {
    const OpTag& tag = step_.tags[index(id)];
    const bool forward = step_.program.names()[op.label.name] == "SEND_F";
    const std::uint32_t stage = forward ? tag.stage + 1 : tag.stage;
    PieceSite sender{model_,
                     {op.rank, plan_.placement.coordinates(op.rank).tensor,
                      model_.layout.first_layer(stage), microbatch(id)}};
    const std::int64_t each = bytes_of(model_.buffers.stored().layers).count();
    const std::int64_t numbers = step_.program.transfer(op).size.count() / each *
                                 (model_.how.sequence_parallel ? model_.how.tensor : 1);
    const Slice slice =
        sender.own(forward ? sender.stream(0, numbers) : sender.stream_gradient(0, numbers));
    step_.program.bind_transfer(id, slice, slice);
  }

  void bind_collective(OpId id, const Program::Op& op) {
    const OpNote& note = step_.notes[index(id)];
    const OpTag& tag = step_.tags[index(id)];
    const std::string_view name = step_.program.names()[op.label.name];
    Slice data;
    switch (note.purpose) {
      case Purpose::layer: {
        PieceSite piece = site(id, op.rank);
        data = exchange_of(piece, name);
        if (name == "loss.max.all_reduce")
          step_.program.set_numbers(id, Combine::max, Precision::fp32);
        break;
      }
      case Purpose::reduce:
        data = model_.buffers.state(StateKind::gradients, bucket(id, StateKind::gradients),
                                    model_.gradients_apart ? tag.microbatch : 0);
        break;
      case Purpose::average_copies:
        data = model_.buffers.state(StateKind::gradients,
                                    shard(op.rank, note, bucket(id, StateKind::gradients)));
        break;
      case Purpose::average_parameters:
      case Purpose::broadcast:
      case Purpose::gather:
        data = model_.buffers.state(StateKind::parameters, bucket(id, StateKind::parameters));
        break;
      case Purpose::compress:
        data = update_site(op.rank).packets(compressed(id));
        if (plan_.scenario.compression.method == CompressionKind::fp16)
          step_.program.set_numbers(id, Combine::sum, Precision::fp16);
        if (plan_.scenario.compression.method == CompressionKind::int8)
          step_.program.set_numbers(id, Combine::sum, Precision::int8);
        break;
      case Purpose::agree:
        data = update_site(op.rank).largest(compressed(id));
        step_.program.set_numbers(id, Combine::max, Precision::fp32);
        break;
      case Purpose::partial_gradients:
        data = update_site(op.rank).partial();
        step_.program.set_numbers(id, Combine::sum, model_.buffers.stored().gradients);
        break;
      case Purpose::tied_gradients:
        data = model_.buffers.state(StateKind::gradients, model_.layout.run(0, "table"));
        break;
      case Purpose::norm:
        data = update_site(op.rank).norm();
        break;
      case Purpose::overflow:
        data = update_site(op.rank).overflow();
        step_.program.set_numbers(id, Combine::max, Precision::fp32);
        break;
      default:
        ASSERT(false);
    }
    if (const Precision format = model_.buffers.format(data); format != Precision::fp32)
      step_.program.set_numbers(id, Combine::sum, format);
    step_.program.bind_collective(id, data, {});
  }

  std::int64_t gradient_number(Bytes offset) const {
    return offset.count() / bytes_of(model_.buffers.stored().gradients).count();
  }

  // What a collective is about: it begins where its gradients do.
  Run bucket(OpId id, StateKind kind) const {
    const OpNote& note = step_.notes[index(id)];
    const Run stage = model_.layout.run(note.stage);
    const StoredNumbers& stored = model_.buffers.stored();
    const Bytes each =
        bytes_of(kind == StateKind::gradients ? stored.gradients : stored.parameters);
    const Bytes size = step_.program.collective(step_.program[id]).data.size;
    return {stage.group, stage.begin + gradient_number(note.begin), size.count() / each.count()};
  }

  // Buckets follow one another to the end of their stage.
  Run compressed(OpId id) {
    const OpNote& note = step_.notes[index(id)];
    const Run stage = model_.layout.run(note.stage);
    if (buckets_.empty())
      for (const OpNote& each : step_.notes)
        if (each.purpose == Purpose::compress)
          buckets_.emplace(each.stage, gradient_number(each.begin));
    const std::int64_t begin = gradient_number(note.begin);
    const auto next = buckets_.upper_bound({note.stage, begin});
    const bool is_last = next == buckets_.end() || next->first != note.stage;
    return {stage.group, stage.begin + begin, (is_last ? stage.size : next->second) - begin};
  }

  // A radix sort is four kernels of one name.
  std::size_t sorts_of(const Program::Op& op, std::string_view name) {
    return name == "dgc.sort" ? sorts_[op.rank]++ % 4 : 0;
  }

  // Copies of a shard lie at the same place on all ranks of the group.
  Run shard(Rank rank, const OpNote& note, const Run& bucket) const {
    for (const Run& run : ownership_.runs(rank, note.stage))
      if (run.begin >= bucket.begin && run.size == bucket.size &&
          run.begin <
              bucket.begin + bucket.size * static_cast<std::int64_t>(plan_.size(Family::shards)))
        return run;
    throw InputError(
        fmt::format("copies of shards are averaged {} bytes at a "
                    "time, and the shards of this "
                    "bucket are not all "
                    "as long; make bucket_size and the model's "
                    "parameters multiples of {} bytes",
                    bytes_of(model_.buffers.stored().gradients).count() * bucket.size,
                    4 * plan_.size(Family::shards)));
  }

  static Slice exchange_of(PieceSite& piece, std::string_view name) {
    if (piece.layer().kind == LayerKind::dense) return dense_exchange(piece, name);
    if (piece.layer().kind == LayerKind::block) return block_exchange(piece, name);
    return end_exchange(piece, name);
  }

  // Inputs, losses and parameters of a rank, for those who fill and read its
  // buffers.
  void describe(Rank rank, BoundStep& bound) {
    const Coordinates at = plan_.placement.coordinates(rank);
    const Schedule& schedule = plan_.schedule;
    bound.states.emplace_back(rank, model_.buffers.of_rank("state", Bytes{64}));
    bound.persistent.push_back(bound.states.back());
    for (std::uint32_t s = 0; s < schedule.stages; ++s)
      if (schedule.rank_of[s] == at.pipeline)
        for (const Slice& slice : model_.buffers.kept_states(model_.layout.run(s)))
          bound.persistent.emplace_back(rank, slice);
    for (std::uint32_t step = 0; step < bound.steps; ++step) {
      if (schedule.rank_of.front() == at.pipeline) feed(rank, at, true, step, bound);
      if (schedule.rank_of.back() == at.pipeline) feed(rank, at, false, step, bound);
    }
    for (std::uint32_t l = 0; l < model_.layout.layers(); ++l) {
      const std::uint32_t stage = model_.layout.stage_of(l);
      if (schedule.rank_of[stage] != at.pipeline) continue;
      for (std::uint32_t t = 0; t < model_.layout.tensors(l).size(); ++t)
        describe_tensor(rank, at, l, t, bound);
    }
  }

  // Of parts that several ranks update alike the first counts; of tied tables
  // the first stage's.
  void describe_tensor(Rank rank, const Coordinates& at, std::uint32_t layer, std::uint32_t tensor,
                       BoundStep& bound) {
    const Run whole = model_.layout.run(layer, tensor);
    const StoredNumbers& stored = model_.buffers.stored();
    const auto part_of = [&](const Run& run, StateKind kind) {
      return ParameterPart{layer,
                           tensor,
                           rank,
                           at.tensor,
                           model_.buffers.state(kind, run),
                           run.begin - whole.begin,
                           kind == StateKind::parameters ? stored.parameters : Precision::fp32};
    };
    const StateKind updated = stored.has_masters() ? StateKind::masters : StateKind::parameters;
    const std::vector<Run>& runs = ownership_.runs(rank, model_.layout.stage_of(layer));
    bound.copies.push_back(part_of(whole, StateKind::parameters));
    for (const Run& run : runs)
      if (const Run part = overlap(whole, run); part.size > 0 && stored.has_masters())
        bound.copies.push_back(part_of(part, StateKind::masters));
    const bool is_copy = plan_.tied_copy > 0 && layer + 1 == model_.layout.layers();
    const bool is_whole = model_.layout.tensors(layer)[tensor].cut == TensorCut::whole;
    if (is_copy || (is_whole && at.tensor > 0)) return;
    if (!ownership_.is_cut() && at.data > 0) return;
    for (const Run& run : runs)
      if (const Run part = overlap(whole, run); part.size > 0 && is_first_owner(rank, part))
        bound.owned.push_back(part_of(part, updated));
  }

  // Copies of shards (hybrid sharding) are updated alike.
  bool is_first_owner(Rank rank, const Run& part) {
    const Coordinates at = plan_.placement.coordinates(rank);
    return owners_.emplace(at.tensor, at.pipeline, part.group, part.begin).second;
  }

  void feed(Rank rank, const Coordinates& at, bool first, std::uint32_t step, BoundStep& bound) {
    const std::uint32_t microbatches = plan_.schedule.microbatches;
    for (std::uint32_t m = 0; m < microbatches; ++m)
      add_feed(model_,
               {.rank = rank,
                .tensor_place = at.tensor,
                .microbatch = step * microbatches + m,
                .step = step,
                .first_sample = first_sample(at, m)},
               first, bound);
  }

  const StepPlan& plan_;
  StepProgram step_;
  const TrainingNumbers& numbers_;
  BindingModel model_;
  Ownership ownership_;
  std::int64_t count_ = 1;
  const std::vector<LocalStep> schedule_ = local_schedule(plan_.scenario.local_sgd);
  LocalStep kind_ = LocalStep::synchronous;
  std::set<std::pair<std::uint32_t, std::int64_t>> buckets_;  // compressed: stage and begin
  std::map<Rank, std::size_t> sorts_;                         // kernels so far
  std::set<Rank> summed_;  // whose micro-batches' gradients have been added up
  std::set<std::tuple<std::size_t, std::size_t, std::uint32_t, std::int64_t>> owners_;
};

}  // namespace

BoundStep bound_step_of(const Scenario& scenario, const Workload& workload,
                        const Topology& topology, const CostModel& cost,
                        const TrainingNumbers& numbers) {
  Routing routing{topology};
  FastSimulator engine{routing, cost};
  FamilyPool pool{routing, engine};
  // What runs are our own kernels and messages, whoever's a prediction is about.
  Scenario own = scenario;
  own.training.framework = 0;
  const Accelerator& device = accelerator_of(topology);
  StepPlan plan = plan_step(own, workload, topology.rank_count(), device, cost);
  StepNetwork network{plan.placement, own.collectives, pool};
  plan = complete_plan(std::move(plan), network);
  StepProgram step = lower_step(plan, network, cost, bindable);
  return bind(plan, workload, std::move(step), numbers);
}

BoundStep bind(const StepPlan& plan, const Workload& workload, StepProgram step,
               const TrainingNumbers& numbers) {
  std::vector<Problem> problems;
  for (std::string& problem : binding_problems(plan, workload))
    problems.push_back({{}, std::move(problem)});
  if (!problems.empty()) throw InputError(std::move(problems));
  ASSERT(step.notes.size() == step.program.size());
  return Binder(plan, workload, std::move(step), numbers).run();
}

}  // namespace rehearse
