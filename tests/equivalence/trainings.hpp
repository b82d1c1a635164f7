// Small trainings for the equivalence tests: a scenario in a few words, bound
// and run for some steps.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "kernels/math/step_state.hpp"
#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/program/verify.hpp"
#include "strategies/binding/bind.hpp"
#include "strategies/binding/training_data.hpp"
#include "strategies/collectives/decide.hpp"
#include "strategies/methods/lower.hpp"
#include "tests/equivalence/training_interpreter.hpp"
#include "tests/support/interpreter.hpp"
#include "tests/support/training.hpp"

namespace rehearse {

/// A model, a scenario, so many ranks.
struct SmallTraining {
  Workload model;
  Scenario scenario;
  std::size_t ranks = 1;
  TrainingNumbers numbers{};
};

inline Workload small_mlp() {
  return mlp_workload("mlp", std::vector<std::int64_t>{12, 16, 24, 16, 8}, true);
}

inline Workload small_gpt(std::int64_t layers = 2) {
  Transformer shape{.hidden = 16, .layers = layers, .heads = 4, .kv_heads = 4, .head_size = 4};
  shape.ffn = 32, shape.vocabulary = 23, shape.positions = 8;
  Workload model = transformer_workload("gpt", "gpt2", shape);
  model.seq_length = 8;
  return model;
}

inline Workload small_llama(std::int64_t layers = 2) {
  Transformer shape{.hidden = 16, .layers = layers, .heads = 4, .kv_heads = 2, .head_size = 4};
  shape.ffn = 24, shape.vocabulary = 23, shape.positions = 8;
  shape.norm = Norm::rms, shape.learned_positions = false, shape.gated = true;
  shape.qkv_bias = shape.out_bias = shape.mlp_bias = shape.tied = false;
  Workload model = transformer_workload("llama", "llama", shape);
  model.seq_length = 8;
  return model;
}

/// The plan and its lowered step, on GPUs around a switch; both refer to what
/// it holds.
class LoweredTraining {
 public:
  explicit LoweredTraining(const SmallTraining& training)
      : topology_{calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us})},
        plan{plan_step(training.scenario, training.model, training.ranks,
                       topology_.accelerators.front(), cost_)},
        network_{plan.placement, training.scenario.collectives, pool_} {
    plan = complete_plan(std::move(plan), network_);
    step = lower_step(plan, network_, cost_, bindable);
  }

  StepProgram lowered(const LowerOptions& options) {
    return lower_step(plan, network_, cost_, options);
  }

 private:
  Topology topology_;
  ProductCost cost_{1_us, 1_us, 1};
  Routing routing_{topology_};
  FastSimulator engine_{routing_, cost_};
  FamilyPool pool_{routing_, engine_};

 public:
  StepPlan plan;

 private:
  StepNetwork network_;

 public:
  StepProgram step;
};

struct TrainingResult {
  std::vector<double> losses;
  std::vector<NamedTensor> parameters;
  std::vector<double> scales;  // of the loss, in each step; 0: the step was skipped
};

/// What the step has done with its scale, if it has one: the same on all ranks.
inline void note_scale(const BoundStep& step, const RankMemory& memory, TrainingResult& result) {
  if (!step.scales_loss) return;
  const auto state_of = [&](std::size_t i) {
    StepState state;
    std::memcpy(&state, memory(step.states[i].first, step.states[i].second).data(), sizeof state);
    return state;
  };
  const StepState first = state_of(0);
  for (std::size_t i = 1; i < step.states.size(); ++i)
    if (const StepState other = state_of(i); std::memcmp(&first, &other, sizeof first) != 0)
      throw CheckFailed("ranks differ in what they know of the step");
  const ScaledLoss scaled = *read_scaled_loss(step, memory);
  result.scales.push_back(scaled.skipped ? 0 : scaled.scale);
}

inline BoundStep bound_step(const SmallTraining& training) {
  LoweredTraining lowered{training};
  return bind(lowered.plan, training.model, std::move(lowered.step), training.numbers);
}

/// Program order, or a random legal order for every step where a seed is given.
inline TrainingResult train(const SmallTraining& training, std::size_t steps,
                            std::optional<std::uint64_t> seed = {}) {
  const BoundStep step = bound_step(training);
  TrainingInterpreter interpreter{step.program()};
  const RankMemory memory = [&](Rank rank, const Slice& slice) {
    return interpreter.bytes(rank, slice);
  };
  fill_parameters(step, training.numbers, memory);
  TrainingResult result;
  Draw draw{seed.value_or(0)};
  for (std::size_t s = 0; s < steps; s += step.steps) {
    fill_batch(step, training.model, training.numbers, s, memory);
    if (seed)
      interpreter.run(random_order(step.program(), draw));
    else
      interpreter.run();
    const std::vector<double> losses = read_losses(step, memory);
    result.losses.insert(result.losses.end(), losses.begin(), losses.end());
    note_scale(step, memory, result);
  }
  result.parameters = read_parameters(step, training.model, memory);
  return result;
}

/// The same with every collective as its transfers, which is what runs on real ranks.
inline TrainingResult train_expanded(const SmallTraining& training, std::size_t steps,
                                     const std::string& algorithm) {
  const BoundStep step = bound_step(training);
  const Topology topology = calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  const Program program = expand_collectives(step.program(), routing, {.algorithm = algorithm});
  if (const std::optional<Race> race = verify(program)) throw CheckFailed(describe(program, *race));
  TrainingInterpreter interpreter{program};
  const RankMemory memory = [&](Rank rank, const Slice& slice) {
    return interpreter.bytes(rank, slice);
  };
  fill_parameters(step, training.numbers, memory);
  TrainingResult result;
  for (std::size_t s = 0; s < steps; s += step.steps) {
    fill_batch(step, training.model, training.numbers, s, memory);
    interpreter.run();
    for (const double loss : read_losses(step, memory)) result.losses.push_back(loss);
    note_scale(step, memory, result);
  }
  result.parameters = read_parameters(step, training.model, memory);
  return result;
}

/// The largest |a - b| / |b| of all tensors, by their Euclidean norms.
inline double difference(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  double most = a.size() == b.size() ? 0 : 1e9;
  for (std::size_t t = 0; t < std::min(a.size(), b.size()); ++t) {
    double apart = 0, length = 0;
    if (a[t].name != b[t].name || a[t].values.size() != b[t].values.size()) return 1e9;
    for (std::size_t i = 0; i < a[t].values.size(); ++i) {
      const auto x = static_cast<double>(a[t].values[i]), y = static_cast<double>(b[t].values[i]);
      apart += (x - y) * (x - y), length += y * y;
    }
    const double relative = std::sqrt(apart / length);
    most = relative <= most ? most : relative;  // a NaN stays
  }
  return most;
}

}  // namespace rehearse
