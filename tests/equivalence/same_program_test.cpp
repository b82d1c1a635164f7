// What runs is what is predicted: the program that `run` executes on threads, processes or GPUs,
// simulated, ends at the picosecond of the prediction; for every combination of strategies, and
// whatever algorithm and protocol its collectives are told to take.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <functional>

#include "sim/base/error.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "strategies/predict/server_run.hpp"
#include "tests/equivalence/lossless_rows.hpp"
#include "tests/equivalence/server_cases.hpp"
#include "tests/equivalence/training_cases.hpp"
#include "tools/measure/host_step.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::same_program_test {
namespace {

/// GPUs around a switch, with two protocols that are each the better one at some sizes, and nobody
/// who chooses for us.
Topology star_with_protocols(std::size_t ranks) {
  Topology topology = calm_star(ranks, {BytesPerSecond{1e10}, 1_us});
  topology.protocols = {{.name = "ll", .overhead = 1_us, .payload = 0.5},
                        {.name = "simple", .overhead = 4_us}};
  return topology;
}

/// One node of a published machine, whose library is NCCL, cut to so many GPUs.
Topology a100s(std::size_t ranks) { return load_cluster("dgx-a100", {1, ranks}); }

/// The time, or the refusal.
struct Answer {
  Time time;
  std::string refusal;
  friend bool operator==(const Answer&, const Answer&) = default;
  friend void PrintTo(const Answer& answer, std::ostream* out) {
    *out << answer.time.ps() << " ps " << answer.refusal;
  }
};

Answer answer_of(const std::function<Time()>& time) {
  try {
    return {time(), ""};
  } catch (const InputError& error) {
    return {{}, error.problems().front().message};
  }
}

Answer predicted(const LoadedScenario& loaded) {
  const ShapedRoofline cost;
  return answer_of([&] {
    if (loaded.scenario.parameter_server.servers > 0)
      return predict_servers(loaded.scenario, loaded.workload, loaded.topology, cost, true)
          .timeline.makespan;
    return StepPredictor{loaded.topology, cost}
        .predict(loaded.scenario, loaded.workload, {})
        .timeline.makespan;
  });
}

Answer executed(const LoadedScenario& loaded, HostCompute compute, const TrainingNumbers& numbers) {
  return answer_of([&] {
    const ShapedRoofline cost;
    const HostStep step = host_step(loaded, compute, numbers);
    Routing routing{loaded.topology};
    return FastSimulator{routing, cost}.run(step.program).makespan;
  });
}

void expect_same(const SmallTraining& training, const Topology& topology,
                 const CollectiveChoice& choice) {
  LoadedScenario loaded{.scenario = training.scenario,
                        .workload = training.model,
                        .topology = topology,
                        .file = "test",
                        .places = {}};
  loaded.scenario.collectives = choice;
  const Answer wanted = predicted(loaded);
  EXPECT_EQ(executed(loaded, HostCompute::paced, training.numbers), wanted) << "paced";
  EXPECT_EQ(executed(loaded, HostCompute::calls, training.numbers), wanted) << "real";
}

CollectiveChoice all_by(const std::string& algorithm, const std::string& protocol) {
  return {.all_reduce = algorithm,
          .all_gather = algorithm,
          .reduce_scatter = algorithm,
          .broadcast = algorithm,
          .all_to_all = algorithm,
          .protocol = protocol};
}

/// As it comes; each algorithm for each kind that it can do; each protocol.
std::vector<CollectiveChoice> choices(const Topology& topology, std::size_t ranks) {
  std::vector<CollectiveChoice> all{{}};
  std::vector<Rank> group;
  for (std::size_t r = 0; r < ranks; ++r) group.push_back(static_cast<Rank>(r));
  for (const Protocol& protocol : topology.protocols) all.push_back({.protocol = protocol.name});
  const std::pair<CollectiveKind, std::string CollectiveChoice::*> kinds[] = {
      {CollectiveKind::all_reduce, &CollectiveChoice::all_reduce},
      {CollectiveKind::all_gather, &CollectiveChoice::all_gather},
      {CollectiveKind::reduce_scatter, &CollectiveChoice::reduce_scatter},
      {CollectiveKind::broadcast, &CollectiveChoice::broadcast}};
  for (const Algorithm& how : algorithms())
    for (const auto& [kind, key] : kinds) {
      const CollectiveShape shape{.kind = kind, .group = group};
      if (how.refusal(shape, topology)) continue;
      CollectiveChoice choice;
      choice.*key = std::string(how.name);
      all.push_back(choice);
    }
  all.push_back(all_by("ring", topology.protocols.back().name));
  all.push_back(all_by("tree", topology.protocols.back().name));  // which not every kind can
  return all;
}

void expect_same_whatever_is_chosen(const SmallTraining& training) {
  for (const Topology& topology : {star_with_protocols(training.ranks), a100s(training.ranks)})
    for (const CollectiveChoice& choice : choices(topology, training.ranks)) {
      SCOPED_TRACE(
          fmt::format("{}: all_reduce {}, all_gather {}, reduce_scatter {}, broadcast {}, "
                      "protocol {}",
                      topology.name, choice.all_reduce, choice.all_gather, choice.reduce_scatter,
                      choice.broadcast, choice.protocol));
      expect_same(training, topology, choice);
    }
}

class SameProgram : public testing::TestWithParam<TrainingCase> {};

TEST_P(SameProgram, RunsAsPredicted) { expect_same_whatever_is_chosen(GetParam().training); }

std::vector<TrainingCase> all_cases() {
  std::vector<TrainingCase> cases;
  for (const TrainingCase& which : training_cases())
    cases.push_back({"kind_" + which.name, which.training});
  for (const Row& row : rows()) cases.push_back({row.name, training_of(row)});
  for (const ServerCase& which : synchronous_cases())
    cases.push_back({"servers_" + which.name, training_of(which)});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, SameProgram, testing::ValuesIn(all_cases()),
                         [](const auto& which) { return which.param.name; });

// Keys that once were predicted in one way and run in another, or refused by the one only.
TEST(SameProgram, KeysOfAScenarioCountForBoth) {
  const std::vector<std::string> keys[] = {{"zero_stage=1", "all_gather=halving_doubling"},
                                           {"zero_stage=1", "all_reduce=tree"},
                                           {"nodes=2", "bucket_size=40KB"},
                                           {"nodes=8", "bucket_size=70KB"}};
  for (const std::vector<std::string>& sets : keys) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(sets, " ")));
    const LoadedScenario loaded =
        ready_scenario(REHEARSE_SOURCE_DIR "/scenarios/mlp-on-cpus.toml", sets);
    const TrainingNumbers numbers = default_numbers(loaded.scenario);
    const Answer wanted = predicted(loaded);
    EXPECT_EQ(wanted.refusal, "");
    EXPECT_EQ(executed(loaded, HostCompute::paced, numbers), wanted) << "paced";
    EXPECT_EQ(executed(loaded, HostCompute::calls, numbers), wanted) << "real";
  }
}

}  // namespace
}  // namespace rehearse::same_program_test
