// What a step puts on every link, from remembered collectives and folded ranks, against the sum
// over every transfer of every rank.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/engine/paths.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/collectives/decide.hpp"
#include "strategies/predict/predictor.hpp"
#include "tests/support/training_jobs.hpp"

namespace rehearse::traffic_count_test {
namespace {

std::vector<double> carried(const Program& program, Routing& routing) {
  const Paths paths(program, routing);
  std::vector<double> bytes(routing.topology().links().size());
  for (const Program::Op& op : program.ops()) {
    if (op.kind != WorkKind::transfer) continue;
    const Transfer& work = program.transfer(op);
    for (const Paths::Crossing& crossing : paths.crossings(work.connection))
      bytes[index(crossing.link)] +=
          static_cast<double>(work.wire.count()) * static_cast<double>(crossing.weight);
  }
  return bytes;
}

// Rings only, so that both ways choose the same.
void choose_rings(Scenario& scenario, const Topology& machine) {
  CollectiveChoice& choice = scenario.collectives;
  choice.all_reduce = choice.reduce_scatter = choice.all_gather = choice.broadcast = "ring";
  if (!machine.protocols.empty()) choice.protocol = "simple";
}

TEST(TrafficCount, IsWhatEveryTransferAddsUpTo) {
  const ShapedRoofline cost;
  int compared = 0;
  for (TrainingJob job : training_jobs()) {
    if (job.topology().rank_count() > 16 || job.scenario.parallelism.expert > 1) continue;
    if (job.scenario.parallelism.context > 1) continue;
    SCOPED_TRACE(job.name);
    const Topology machine = job.topology();
    choose_rings(job.scenario, machine);
    StepPredictor predictor(machine, cost);
    const StepProgram step = predictor.predict(job.scenario, job.model, {.count_links = true}).step;
    ASSERT_EQ(step.link_bytes.size(), machine.links().size());
    Routing routing{machine};
    const StepProgram whole = predictor.whole_program(job.scenario, job.model);
    const std::uint16_t simple = message_protocol_number(machine);
    const std::vector<double> expected =
        carried(expand_collectives(whole.program, routing, {"ring", simple}), routing);
    double most = 0;
    for (const double bytes : expected) most = std::max(most, bytes);
    ASSERT_GT(most, 0);
    // Shares are rounded to 1/256 of a collective's busiest link, and bytes to whole ones.
    for (std::size_t l = 0; l < expected.size(); ++l) {
      const auto found = static_cast<double>(step.link_bytes[l].count());
      ASSERT_NEAR(found, expected[l], 0.01 * expected[l] + 0.001 * most)
          << "link " << l << " of " << most;
    }
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

TEST(TrafficCount, IsTheSameFoldedAndUnfolded) {
  const ShapedRoofline cost;
  for (const TrainingJob& job : training_jobs()) {
    if (job.topology().rank_count() > 16) continue;
    SCOPED_TRACE(job.name);
    const Topology machine = job.topology();
    StepPredictor predictor(machine, cost);
    const auto count = [&](bool fold) {
      return predictor.predict(job.scenario, job.model, {.fold = fold, .count_links = true})
          .step.link_bytes;
    };
    EXPECT_EQ(count(true), count(false));
  }
}

TEST(TrafficCount, IsOnlyMadeWhenAsked) {
  const ShapedRoofline cost;
  const TrainingJob job = training_jobs().front();
  const Topology machine = job.topology();
  EXPECT_TRUE(
      StepPredictor(machine, cost).predict(job.scenario, job.model, {}).step.link_bytes.empty());
}

}  // namespace
}  // namespace rehearse::traffic_count_test
