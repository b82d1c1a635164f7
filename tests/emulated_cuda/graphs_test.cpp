// Steps as CUDA graphs: the same bits as without, on 2, 4 and 8 emulated GPUs; and programs that
// make a graph in a way that CUDA does not allow, each caught.
#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_executor.hpp"
#include "sim/base/error.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/emulated_cuda/sparing.hpp"
#include "tests/equivalence/lossless_rows.hpp"
#include "tools/measure/cuda_places.hpp"

namespace rehearse::graphs_test {
namespace {

TrainingResult train_on(const SmallTraining& training, std::size_t devices, std::uint64_t seed,
                        bool by_nccl, bool graph) {
  emulated_cuda::reset({.devices = static_cast<int>(devices), .memory = 8 << 20, .seed = seed});
  const BoundStep step = bound_step(training);
  const Topology topology = calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  const Program program =
      by_nccl ? step.program() : expand_collectives(step.program(), routing, {.algorithm = "ring"});
  std::vector<int> device_of;
  for (std::size_t rank = 0; rank < training.ranks; ++rank)
    device_of.push_back(static_cast<int>(rank % devices));
  TrainingResult result;
  {
    const CudaMemory memory{program, device_of, places_of(step)};
    StagedCudaMemory staged{memory};
    const RankMemory at = [&](Rank rank, const Slice& slice) { return staged.at(rank, slice); };
    fill_parameters(step, training.numbers, at);
    CudaExecutor executor{memory, {.graph = graph}};
    // A plain one, one that makes the graph, and one that only starts it.
    for (std::size_t s = 0; s < 3 * step.steps; s += step.steps) {
      fill_batch(step, training.model, training.numbers, s, at);
      staged.store();
      const Timeline timeline = executor.run(program);
      for (std::size_t i = 0; i < program.size(); ++i)
        for (const OpId input : program.after(static_cast<OpId>(i)))
          // Clocks of different devices do not begin at the same moment.
          if (program[input].rank == program.ops()[i].rank) {
            EXPECT_LE(timeline.spans[index(input)].end, timeline.spans[i].begin) << i;
          }
      for (const double loss : read_losses(step, at)) result.losses.push_back(loss);
      staged.store();
    }
    result.parameters = read_parameters(step, training.model, at);
  }
  EXPECT_EQ(emulated_cuda::complaints(), std::vector<std::string>{});
  EXPECT_EQ(emulated_cuda::leaks(), "");
  return result;
}

std::vector<Row> graph_rows() {
  std::vector<Row> chosen;
  for (const Row& row : rows())
    for (const char* name :
         {"mlp_dp4", "mlp_dp8_sgd", "mlp_dp2_lamb", "mlp_pp2_tp2", "mlp_zero3_overlap", "gpt_zbv",
          "llama_zero3", "gpt_dropout_tp2_sequence"})
      if (row.name == name) chosen.push_back(row);
  return chosen;
}

class CudaGraphs : public testing::TestWithParam<Row> {};

TEST_P(CudaGraphs, LeaveTheSameBits) {
  if (is_sparing() && GetParam().model != Model::mlp) GTEST_SKIP() << "slow under the sanitizer";
  const SmallTraining training = training_of(GetParam());
  std::uint64_t seed = std::hash<std::string>{}(GetParam().name) % 100;
  for (const std::size_t devices : {2, 4, 8})
    for (const bool by_nccl : {false, true}) {
      if (by_nccl && training.ranks > devices) continue;
      // Transformers are slow: each on one machine.
      if (GetParam().model != Model::mlp && (devices != training.ranks || by_nccl)) continue;
      SCOPED_TRACE(std::to_string(devices) + " GPUs, seed " + std::to_string(++seed));
      const TrainingResult plain = train_on(training, devices, seed, by_nccl, false);
      const TrainingResult graph = train_on(training, devices, seed + 1000, by_nccl, true);
      EXPECT_EQ(graph.losses, plain.losses);
      EXPECT_EQ(graph.parameters, plain.parameters);
    }
}

INSTANTIATE_TEST_SUITE_P(All, CudaGraphs, testing::ValuesIn(graph_rows()),
                         [](const auto& row) { return row.param.name; });

// In the plain run, and in the graph that is made behind it.
TEST(GraphFaults, AreOneLine) {
  for (const Row& row : rows()) {
    if (row.name != "mlp_dp4") continue;
    const BoundStep step = bound_step(training_of(row));
    int calls = 0;  // of NCCL, in a run
    for (const Program::Op& op : step.program().ops())
      if (op.kind == WorkKind::collective) calls += 4;
    ASSERT_GT(calls, 0);
    for (const int failing : {2, calls + 2}) {
      emulated_cuda::reset({.devices = 4, .faults = {.nccl_error = failing}});
      {
        const CudaMemory memory{step.program(), {0, 1, 2, 3}, places_of(step)};
        CudaExecutor executor{memory, {.patience = std::chrono::milliseconds{300}, .graph = true}};
        if (failing > calls) executor.run(step.program());
        EXPECT_THROW(executor.run(step.program()), DeviceError) << failing;
      }
      EXPECT_EQ(emulated_cuda::leaks(), "");
    }
  }
}

}  // namespace
}  // namespace rehearse::graphs_test
