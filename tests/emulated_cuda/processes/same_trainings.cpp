// Under mpirun: a training of every kind of strategy with a process for each emulated GPU, its
// collectives lowered and NCCL's; each process then runs the same one alone on all GPUs, and
// compares all that its rank holds bit by bit.
#include <fmt/format.h>

#include "kernels/cuda/cuda_executor.hpp"
#include "kernels/mpi/mpi_world.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/equivalence/training_cases.hpp"
#include "tools/measure/cuda_places.hpp"

namespace rehearse {
namespace {

constexpr std::size_t steps = 2;

CudaOptions options_of(const MpiWorld& world, std::size_t ranks) {
  CudaOptions options;
  options.processes =
      CudaProcesses{.self = index(world.rank()),
                    .gather = [&](const std::string& mine) { return world.gather(mine); },
                    .look = [&] { world.watch().look(); }};
  for (std::size_t rank = 0; rank < ranks; ++rank) options.processes->process_of.push_back(rank);
  return options;
}

/// What a rank holds behind some steps, and how many ops the timeline knows.
struct Left {
  std::vector<std::vector<std::byte>> slices;
  bool is_timed = true;  // every op has a begin and an end
};

Left train_on(const SmallTraining& training, const BoundStep& step, const Program& program,
              const std::vector<int>& device_of, const CudaOptions& options, Rank self) {
  const CudaMemory memory{program, device_of, places_of(step)};
  StagedCudaMemory staged{memory};
  const RankMemory at = [&](Rank rank, const Slice& slice) { return staged.at(rank, slice); };
  fill_parameters(step, training.numbers, at);
  staged.store();
  CudaExecutor executor{memory, options};
  Left left;
  for (std::size_t s = 0; s < steps; s += step.steps) {
    fill_batch(step, training.model, training.numbers, s, at);
    staged.store();
    const Timeline timeline = executor.run(program);
    for (const Timeline::Span& span : timeline.spans)
      left.is_timed = left.is_timed && span.begin >= Time{} && span.end >= span.begin &&
                      span.end <= timeline.makespan;
  }
  const auto keep = [&](Rank rank, const Slice& slice) {
    if (rank == self) left.slices.push_back(memory.read(rank, slice));
  };
  for (const auto& [rank, slice] : step.persistent) keep(rank, slice);
  for (const BoundStep::LossSlot& slot : step.losses) keep(slot.rank, slot.slice);
  return left;
}

bool is_same(const MpiWorld& world, const SmallTraining& training, bool by_nccl) {
  const BoundStep step = bound_step(training);
  const Topology topology = calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  const Program program =
      by_nccl ? step.program() : expand_collectives(step.program(), routing, {.algorithm = "ring"});
  const int self = static_cast<int>(index(world.rank()));
  std::vector<int> own(training.ranks, CudaMemory::elsewhere), all;
  for (std::size_t rank = 0; rank < training.ranks; ++rank) all.push_back(static_cast<int>(rank));
  if (index(world.rank()) < training.ranks) own[index(world.rank())] = self;
  const emulated_cuda::Options machine{.devices = static_cast<int>(world.size()),
                                       .memory = 4 << 20,
                                       .seed = 1 + static_cast<std::uint64_t>(self)};
  emulated_cuda::reset(machine);
  const Left apart =
      train_on(training, step, program, own, options_of(world, training.ranks), world.rank());
  const bool is_clean = emulated_cuda::leaks().empty() && emulated_cuda::complaints().empty();
  emulated_cuda::reset(machine);
  const Left together = train_on(training, step, program, all, {}, world.rank());
  return is_clean && apart.is_timed && apart.slices == together.slices;
}

int run() {
  const MpiWorld world;
  std::int64_t wrong = 0, done = 0;
  for (const TrainingCase& which : training_cases()) {
    if (which.training.ranks > world.size() || which.training.scenario.training.dropout > 0 ||
        which.training.scenario.parameter_server.servers > 0)
      continue;
    for (const bool by_nccl : {false, true}) {
      const bool same = is_same(world, which.training, by_nccl);
      if (!same)
        fmt::print("{}: {}{} differs\n", world.name(world.rank()), which.name,
                   by_nccl ? " by NCCL" : "");
      wrong += !same;
      ++done;
    }
  }
  std::vector<std::int64_t> worst{wrong};
  world.largest(worst, [] {});
  if (world.rank() == Rank{0})
    fmt::print("{} trainings on {} processes with a GPU each, {} wrong\n", done, world.size(),
               worst.front());
  return worst.front() == 0 && done > 5 ? 0 : 1;
}

}  // namespace
}  // namespace rehearse

int main() { return rehearse::run(); }
