// Changes are made from settings, so that a reader can repeat each of them with --set.
#include "tools/predict/neighbours.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/scenario/scenario_setting.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/predict/check_scenario.hpp"

namespace rehearse {

namespace {

class Changes {
 public:
  Changes(const Scenario& scenario, const Prediction& prediction)
      : scenario_{scenario}, prediction_{prediction} {}

  void add(Change change) { list_.push_back(std::move(change)); }
  void sizes(std::size_t tensor, std::size_t pipeline) {
    const std::size_t held = tensor * pipeline * prediction_.context;
    if (tensor == 0 || pipeline == 0 || prediction_.world % held != 0) return;
    Change change;
    if (tensor != prediction_.tensor) change.push_back(fmt::format("tp={}", tensor));
    if (pipeline != prediction_.pipeline) change.push_back(fmt::format("pp={}", pipeline));
    if (scenario_.parallelism.data)
      change.push_back(fmt::format("dp={}", prediction_.world / held));
    // A pipeline of its own needs no schedule over chunks.
    if (pipeline == 1 && scenario_.parallelism.virtual_pipeline > 1)
      change.insert(change.end(), {"vpp=1", "schedule=1F1B"});
    add(std::move(change));
  }
  void doubled_and_halved_sizes() {
    const std::size_t tp = prediction_.tensor, pp = prediction_.pipeline;
    sizes(2 * tp, pp);
    sizes(tp, 2 * pp);
    if (tp % 2 == 0) sizes(tp / 2, pp);
    if (pp % 2 == 0) sizes(tp, pp / 2);
    if (tp % 2 == 0) sizes(tp / 2, 2 * pp);
    if (pp % 2 == 0) sizes(2 * tp, pp / 2);
  }
  void recompute(Recompute wanted, std::string_view word) {
    if (scenario_.parallelism.recompute != wanted)
      add({fmt::format("recompute_granularity={}", word)});
  }
  void flag(bool is_on, std::string_view key) {
    if (!is_on) add({fmt::format("{}=true", key)});
  }
  std::vector<Change> take() { return std::move(list_); }

 private:
  const Scenario& scenario_;
  const Prediction& prediction_;
  std::vector<Change> list_;
};

void add_schedules(Changes& changes, const Parallelism& parallel) {
  if (parallel.pipeline == 1 || !parallel.schedule_csv.empty()) return;
  const std::size_t chunks = parallel.virtual_pipeline;
  if (chunks == 1) {
    if (parallel.schedule != "1F1B") changes.add({"schedule=1F1B"});
    if (parallel.schedule != "ZBH1") changes.add({"schedule=ZBH1"});
  }
  for (const std::size_t more : {2 * chunks, 3 * chunks})
    changes.add({"schedule=Interleaved1F1B", fmt::format("vpp={}", more)});
}

Scenario changed(Scenario scenario, const Change& change) {
  for (const std::string& text : change) apply(parse_setting(text), scenario);
  return scenario;
}

}  // namespace

std::vector<Change> single_changes(const Scenario& scenario, const Prediction& prediction) {
  const Parallelism& parallel = scenario.parallelism;
  const std::size_t micro = scenario.training.micro_batch_size;
  Changes changes(scenario, prediction);
  changes.add({fmt::format("micro_batch_size={}", 2 * micro)});
  if (micro % 2 == 0) changes.add({fmt::format("micro_batch_size={}", micro / 2)});
  changes.doubled_and_halved_sizes();
  add_schedules(changes, parallel);
  changes.recompute(Recompute::none, "none");
  changes.recompute(Recompute::selective, "selective");
  if (prediction.tensor > 1) changes.flag(parallel.sequence_parallel, "sequence_parallel");
  if (prediction.data * prediction.context > 1) {
    changes.flag(parallel.overlap_grad_reduce, "overlap_grad_reduce");
    if (parallel.zero_stage > 0)
      changes.flag(parallel.overlap_param_gather, "overlap_param_gather");
    for (const std::size_t stage : {std::size_t{0}, std::size_t{1}})
      if (parallel.zero_stage != stage) changes.add({fmt::format("zero_stage={}", stage)});
    for (const std::int64_t factor : {std::int64_t{4}, std::int64_t{16}})
      if (parallel.overlap_grad_reduce && parallel.zero_stage == 0)
        changes.add({fmt::format("bucket_size={}",
                                 to_text(Bytes{factor * bucket_sizes(parallel).others.count()}))});
  }
  return changes.take();
}

std::vector<Change> smaller_changes(const Scenario& scenario, const Prediction& prediction) {
  const Parallelism& parallel = scenario.parallelism;
  const std::size_t micro = scenario.training.micro_batch_size;
  Changes changes(scenario, prediction);
  if (parallel.recompute == Recompute::none) changes.recompute(Recompute::selective, "selective");
  changes.recompute(Recompute::full, "full");
  if (prediction.tensor > 1) changes.flag(parallel.sequence_parallel, "sequence_parallel");
  if (prediction.data * prediction.context > 1)
    for (std::size_t stage = parallel.zero_stage + 1; stage <= 3; ++stage)
      changes.add({fmt::format("zero_stage={}", stage)});
  if (micro % 2 == 0) changes.add({fmt::format("micro_batch_size={}", micro / 2)});
  if (micro > 2) changes.add({"micro_batch_size=1"});
  changes.sizes(2 * prediction.tensor, prediction.pipeline);
  changes.sizes(prediction.tensor, 2 * prediction.pipeline);
  changes.sizes(4 * prediction.tensor, prediction.pipeline);
  return changes.take();
}

std::vector<Change> pairs(std::span<const Change> changes) {
  const auto key = [](const std::string& text) { return text.substr(0, text.find('=')); };
  std::vector<Change> list;
  for (std::size_t a = 0; a < changes.size(); ++a)
    for (std::size_t b = a + 1; b < changes.size(); ++b) {
      const bool clash =
          std::any_of(changes[b].begin(), changes[b].end(), [&](const std::string& text) {
            return std::any_of(changes[a].begin(), changes[a].end(),
                               [&](const std::string& other) { return key(other) == key(text); });
          });
      if (clash) continue;
      list.push_back(changes[a]);
      list.back().insert(list.back().end(), changes[b].begin(), changes[b].end());
    }
  return list;
}

std::vector<Neighbour> evaluate(StepPredictor& predictor, const LoadedScenario& loaded,
                                std::span<const Change> changes) {
  std::vector<Neighbour> neighbours;
  for (const Change& change : changes) {
    try {
      const Scenario other = changed(loaded.scenario, change);
      if (!scenario_problems(other, loaded.workload, loaded.topology).empty()) continue;
      const Prediction prediction = predictor.quick(other, loaded.workload);
      Bytes peak;
      for (const RoleReport& role : prediction.roles) peak = std::max(peak, role.peak_bytes);
      neighbours.push_back({.change = change,
                            .step = prediction.step,
                            .samples = prediction.samples,
                            .samples_per_second = prediction.samples_per_second(),
                            .peak = peak,
                            .fits = prediction.fits});
    } catch (const InputError&) {
      // It does not come out even: no neighbour.
    }
  }
  return neighbours;
}

std::string to_string(const Change& change) {
  std::string text;
  for (const std::string& setting : change)
    text += fmt::format("{}--set {}", text.empty() ? "" : " ", setting);
  return text;
}

}  // namespace rehearse
