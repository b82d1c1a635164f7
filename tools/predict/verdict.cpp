// The largest loss is named with its cause; memory comes first, because nothing runs without it.
#include "tools/predict/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/engine/explain.hpp"
#include "strategies/placement/placement.hpp"

namespace rehearse {

namespace {

constexpr std::size_t most_told = 3;

double gib(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 30); }

std::string words_for(MemoryKind kind) {
  if (kind == MemoryKind::optimizer) return "the optimizer's state";
  const bool activation = kind >= MemoryKind::input && kind <= MemoryKind::loss;
  return fmt::format("{}{}", activation ? "activations of kind " : "", to_string(kind));
}

class Judge {
 public:
  Judge(const LoadedScenario& loaded, const Prediction& prediction)
      : scenario_{loaded.scenario},
        parallel_{scenario_.parallelism},
        topology_{loaded.topology},
        told_{prediction} {}

  std::vector<std::string> sentences() const {
    std::vector<std::string> list;
    if (!told_.fits) list.push_back(memory());
    list.push_back(largest_loss());
    return list;
  }

 private:
  double share(Time time) const {
    return 100 * time.seconds().count() / told_.step.seconds().count();
  }

  std::string memory() const {
    const auto worst = std::max_element(
        told_.roles.begin(), told_.roles.end(),
        [](const RoleReport& a, const RoleReport& b) { return a.peak_bytes < b.peak_bytes; });
    const auto most = std::max_element(worst->peak.begin(), worst->peak.end());
    const auto kind = static_cast<MemoryKind>(most - worst->peak.begin());
    return fmt::format(
        "It does not fit: {} needs {:.1f} GiB of {:.1f}, {:.1f} GiB too much; most of it is {}, "
        "{:.1f} GiB.",
        worst->name == "all ranks" ? "every rank" : worst->name, gib(worst->peak_bytes),
        gib(worst->capacity), gib(worst->peak_bytes - worst->capacity), words_for(kind),
        gib(*most));
  }

  std::string largest_loss() const {
    constexpr double small = 5;  // per cent of a step
    const std::array<Time, dimension_count>& exposed = told_.mean.exposed;
    const auto most = std::max_element(exposed.begin(), exposed.end());
    const double bubble = share(told_.mean.bubble);
    if (std::max(share(*most), bubble) < small) return compute();
    if (bubble >= share(*most)) return bubble_words(bubble);
    return exposed_words(static_cast<Dimension>(most - exposed.begin()), share(*most));
  }

  std::string compute() const {
    const double busy = told_.mean.compute.seconds().count();
    const double rate =
        told_.model_flops.count() / static_cast<double>(told_.world) / busy / told_.peak.count();
    return fmt::format(
        "Compute limits this step: {:.1f} % of it. While kernels run they reach {:.1f} % of the "
        "peak{}.",
        share(told_.mean.compute), 100 * rate,
        parallel_.recompute == Recompute::full ? ", not counting what is computed again" : "");
  }

  std::string bubble_words(double bubble) const {
    if (told_.pipeline == 1)
      return fmt::format("Ranks wait for each other {:.1f} % of the step.", bubble);
    const std::size_t p = told_.pipeline, m = told_.microbatches,
                      v = std::max<std::size_t>(parallel_.virtual_pipeline, 1);
    const double ideal = 100.0 * static_cast<double>(p - 1) / static_cast<double>(v * m + p - 1);
    std::string text = fmt::format(
        "The pipeline bubble is the largest loss: {:.1f} % of the step, with {} stages and {} "
        "micro-batches",
        bubble, p * v, m);
    if (parallel_.schedule == "GPipe" || parallel_.schedule == "1F1B" || v > 1)
      text += fmt::format(
          "; even stages without communication would have {:.1f} % = ({} - 1) / "
          "({}{} + {} - 1)",
          ideal, p, v > 1 ? fmt::format("{} × ", v) : "", m, p);
    return text + ". More micro-batches, or more chunks a rank, make it smaller.";
  }

  std::string exposed_words(Dimension dimension, double part) const {
    std::string text = fmt::format(
        "Exposed {}-parallel communication is the largest loss: {:.1f} %"
        " of the step. ",
        to_string(dimension), part);
    switch (dimension) {
      case Dimension::data:
        return text + data_words();
      case Dimension::tensor:
        return text + tensor_words();
      case Dimension::pipeline:
        return text +
               "Stages hand over activations that nothing hides: fewer stages, or "
               "neighbours closer to each other.";
      case Dimension::context:
        return text + "Parts of sequences travel between ranks: keep their groups in a node.";
      case Dimension::expert:
        return text + "Tokens travel to their experts: keep their groups in a node.";
    }
    return text;
  }

  std::string data_words() const {
    if (scenario_.local_sgd.interval > 0)
      return "Nothing is computed while parameters are averaged: a longer interval, or a faster "
             "network.";
    if (!parallel_.overlap_grad_reduce)
      return parallel_.zero_stage > 0
                 ? "Gradients are reduced and parameters gathered with nothing beside them: "
                   "overlap_grad_reduce and overlap_param_gather hide them."
                 : "Gradients are reduced after the backward pass: overlap_grad_reduce hides them "
                   "beside it.";
    if (parallel_.zero_stage > 0 && !parallel_.overlap_param_gather)
      return "Parameters are gathered with nothing beside them: overlap_param_gather hides that.";
    return "The backward pass is too short to hide all of it: a larger batch per rank, fewer "
           "bytes, or a faster network.";
  }

  std::string tensor_words() const {
    const Placement placement = place_ranks(parallel_, told_.world);
    const std::vector<Rank> group = placement.group(Dimension::tensor, Rank{0});
    const auto node = [&](Rank rank) { return topology_[topology_.device_of(rank)].node; };
    const bool crosses = std::any_of(group.begin(), group.end(),
                                     [&](Rank rank) { return node(rank) != node(group.front()); });
    if (crosses)
      return fmt::format(
          "Groups of {} ranks cross nodes, so every layer waits for the network: "
          "keep tp inside a node.",
          group.size());
    return "It is on the path of every layer: fewer tensor-parallel ranks, or larger "
           "micro-batches.";
  }

  const Scenario& scenario_;
  const Parallelism& parallel_;
  const Topology& topology_;
  const Prediction& told_;
};

}  // namespace

Verdict judge(const LoadedScenario& loaded, const Prediction& prediction, StepPredictor& predictor,
              bool tries) {
  Verdict verdict;
  verdict.sentences = Judge(loaded, prediction).sentences();
  verdict.makes_it_fit = !prediction.fits;
  if (!tries) return verdict;
  const auto attempt = [&](std::span<const Change> changes) {
    verdict.better = evaluate(predictor, loaded, changes);
    verdict.tried += verdict.better.size();
    std::erase_if(verdict.better, [](const Neighbour& neighbour) { return !neighbour.fits; });
  };
  if (prediction.fits) {
    attempt(single_changes(loaded.scenario, prediction));
    constexpr double worth_telling = 1.01;
    std::erase_if(verdict.better, [&](const Neighbour& neighbour) {
      return neighbour.samples_per_second < worth_telling * prediction.samples_per_second();
    });
  } else {
    const std::vector<Change> changes = smaller_changes(loaded.scenario, prediction);
    attempt(changes);
    if (verdict.better.empty()) attempt(pairs(changes));
  }
  std::stable_sort(verdict.better.begin(), verdict.better.end(),
                   [](const Neighbour& a, const Neighbour& b) {
                     return a.samples_per_second > b.samples_per_second;
                   });
  if (verdict.better.size() > most_told) verdict.better.resize(most_told);
  return verdict;
}

std::string describe(const Neighbour& neighbour, const Prediction& prediction) {
  const double gain = 100 * (neighbour.samples_per_second / prediction.samples_per_second() - 1);
  const double saved =
      100 * (neighbour.step.seconds().count() / prediction.step.seconds().count() - 1);
  const bool same_batch = neighbour.samples == prediction.samples;
  return fmt::format(
      "{}: {} ({}), {:.1f} GiB", to_string(neighbour.change), readable(neighbour.step),
      same_batch ? fmt::format("{:+.1f} %", saved)
                 : fmt::format("{:+.1f} % samples/s, batch {}", gain, neighbour.samples),
      gib(neighbour.peak));
}

}  // namespace rehearse
