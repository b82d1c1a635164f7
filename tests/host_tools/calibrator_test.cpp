// What a calibration on the host is made of: trials in turns, and the kernels of a step without
// its messages.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/program/kernel_list.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "tests/support/host_machine.hpp"
#include "tests/support/own_folder.hpp"
#include "tools/measure/host_calibrator.hpp"

namespace rehearse::calibrator_test {
namespace {

constexpr const char* scenario = R"(schema = 1
[model]
model_type = "mlp"
layer_sizes = [32, 32, 32, 10]
[cluster]
name = "machine.toml"
[parallelism]
zero_stage = 3
[training]
micro_batch_size = 8
dtype = "fp32"
optimizer = "adam"
)";

class HostCalibrators : public OwnFolder {
 protected:
  HostCalibrators() {
    write("machine.toml", host_machine(2));
    write("scenario.toml", scenario);
  }
  LoadedScenario loaded() const {
    LoadedScenario loaded = load_scenario(path("scenario.toml"));
    check_scenario(loaded);
    return loaded;
  }
};

Program two_messages() {
  Program program;
  const ConnectionId way = program.connect({.source = Rank{0}, .target = Rank{1}});
  const Label label{program.name("message")};
  for (std::int64_t i = 0; i < 2; ++i)
    program.add_transfer(Stream::comm, label,
                         {.connection = way,
                          .target_buffer = Buffer{1},
                          .source_offset = i * 64_B,
                          .target_offset = i * 64_B,
                          .size = 64_B,
                          .wire = 64_B},
                         {});
  return program;
}

TEST(Trials, EveryRoundRunsEachOfThemOnce) {
  const HostRanks ranks;
  Trials trials(ranks);
  const Trial& first = trials.add(two_messages());
  trials.round();
  const Trial& second = trials.add(two_messages());
  for (int i = 0; i < 4; ++i) trials.round();
  EXPECT_EQ(first.runs().size(), 5u);  // the one to warm up is not kept
  EXPECT_EQ(second.runs().size(), 4u);
  EXPECT_EQ(first.runs().front().spans.size(), 2u);
  EXPECT_GT(median_makespan(first), 0);
}

TEST(Trials, EndWhenTheyAreAskedToStop) {
  const HostRanks ranks;
  bool stops = false;
  Trials trials(ranks, [&] { return stops; });
  // Longer than it takes until somebody asks.
  Program products;
  KernelCall call{.kernel = Kernel::gemm, .operands = 3};
  call.sizes = {512, 512, 512, 0, 0, 0, 0, 0};
  call.numbers = {1, 0, 0, 0};
  const Bytes matrix{4 * 512 * 512};
  const std::array<Access, 3> accesses{{{{Buffer{0}, Bytes{0}, matrix}, false},
                                        {{Buffer{1}, Bytes{0}, matrix}, false},
                                        {{Buffer{2}, Bytes{0}, matrix}, true}}};
  for (int i = 0; i < 200; ++i)
    products.add_compute(Rank{0}, Stream::compute, {products.name("product")}, {}, {}, accesses,
                         std::array{call});
  const Trial& trial = trials.add(std::move(products));
  stops = true;
  EXPECT_THROW(trials.round(), DeviceError);
  EXPECT_TRUE(trial.runs().empty());
}

TEST_F(HostCalibrators, StepsWithoutMessagesHaveTheSameKernelsInTheSameOrder) {
  const LoadedScenario of = loaded();
  const HostStep step = host_step(of, HostCompute::calls, default_numbers(of.scenario));
  ASSERT_GT(step.program.transfer_count(), 0u);
  const Program kernels = without_messages(step.program);
  ASSERT_EQ(kernels.size(), step.program.size());
  EXPECT_EQ(kernels.transfer_count(), 0u);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op &made = kernels[id], &was = step.program[id];
    EXPECT_EQ(made.rank, was.rank);
    EXPECT_EQ(made.stream, was.stream);
    EXPECT_TRUE(std::ranges::equal(kernels.after(id), step.program.after(id)));
    ASSERT_EQ(made.kind == WorkKind::compute, was.kind == WorkKind::compute);
    if (made.kind != WorkKind::compute) continue;
    EXPECT_EQ(kernels.compute(made), step.program.compute(was));
    EXPECT_TRUE(std::ranges::equal(kernels.accesses(made), step.program.accesses(was)));
    EXPECT_TRUE(std::ranges::equal(kernels.calls(made), step.program.calls(was)));
  }
}

TEST_F(HostCalibrators, KernelsOfAStepAreAllTimed) {
  const HostRanks ranks;
  const LoadedScenario of = loaded();
  StepKernels step(ranks, of, {});
  for (int i = 0; i < 5; ++i) step.round();
  const std::vector<StepKernels::Kind> kinds = step.kinds();
  double products = 0;
  for (const StepKernels::Kind& kind : kinds) {
    EXPECT_GT(kind.seconds, 0) << kind.name;
    EXPECT_LT(kind.seconds, 1) << kind.name;
    EXPECT_GT(kind.uses, 0) << kind.name;
    if (kind.work.gemm.m > 0) products += kind.uses;
  }
  // Three layers: a product forward, and two backward, but none for the input's gradient.
  EXPECT_DOUBLE_EQ(products, 3 + 3 + 2);
}

TEST_F(HostCalibrators, WorkersOfServersHaveTheKernelsOfOthers) {
  LoadedScenario of = loaded();
  of.scenario.parallelism.zero_stage = 0;
  of.scenario.parameter_server.servers = 1;
  of.scenario.parameter_server.placement = ServerPlacement::colocated;
  const HostRanks ranks;
  StepKernels step(ranks, of, {});
  step.round();
  const std::vector<StepKernels::Kind> kinds = step.kinds();
  EXPECT_TRUE(std::ranges::any_of(kinds, [](const StepKernels::Kind& kind) {
    return kind.work.gemm == Gemm{8, 32, 32, 1};
  }));
}

TEST_F(HostCalibrators, ProfilesKnowEveryKernelOfTheStep) {
  const HostRanks ranks;
  const LoadedScenario of = loaded();
  Progress progress(true);
  HostCalibrator calibrator(ranks, {of.topology, {of}, 64_KiB}, progress);
  calibrator.round();
  const std::optional<Bytes> piece = calibrator.profile().calibration.links.front().piece;
  for (int i = 0; i < 2; ++i) calibrator.round();
  const Profile profile = calibrator.profile();
  // What is lowered with one piece is not measured with another.
  EXPECT_EQ(profile.calibration.links.front().piece, piece);
  ASSERT_EQ(profile.calibration.devices.size(), 1u);
  const std::vector<Accelerator::MeasuredGemm>& known =
      profile.calibration.devices.front().changes.measured;
  StepKernels step(ranks, of, {});
  step.round();
  for (const StepKernels::Kind& kind : step.kinds()) {
    if (measured_shape(kind.work).n == 0) continue;
    EXPECT_TRUE(std::ranges::any_of(known, [&](const Accelerator::MeasuredGemm& measured) {
      return measured.shape == measured_shape(kind.work);
    })) << kind.name;
  }
}

}  // namespace
}  // namespace rehearse::calibrator_test
