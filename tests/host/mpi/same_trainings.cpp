// Under mpirun: a training of every kind of strategy with a process for each rank; each process
// then runs the same one with threads, and compares all that its rank holds bit by bit.
#include <fmt/format.h>

#include "kernels/comm/mpi_executor.hpp"
#include "tests/equivalence/training_cases.hpp"

namespace rehearse {
namespace {

constexpr std::size_t steps = 2;

RankMemory memory_of(HostMemory& host, std::optional<Rank> only) {
  return [&host, only](Rank rank, const Slice& slice) {
    if (only && rank != *only) return std::span<std::byte>{};
    host.cover(rank, slice);
    return host.at(rank, slice);
  };
}

void train_on(const SmallTraining& training, const BoundStep& step, const Program& program,
              Executor& executor, const RankMemory& memory) {
  for (std::size_t s = 0; s < steps; s += step.steps) {
    fill_batch(step, training.model, training.numbers, s, memory);
    executor.run(program);
  }
}

bool is_same(const MpiWorld& world, const SmallTraining& training) {
  const BoundStep step = bound_step(training);
  const Topology topology = calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  const Program program = expand_collectives(step.program(), routing, {.algorithm = "ring"});
  HostMemory own(program, world.rank()), all(program);
  const RankMemory mine = memory_of(own, world.rank()), theirs = memory_of(all, {});
  fill_parameters(step, training.numbers, mine);
  fill_parameters(step, training.numbers, theirs);
  for (const auto& [rank, slice] : step.persistent) mine(rank, slice), theirs(rank, slice);
  MpiExecutor processes(world, program, own);
  train_on(training, step, program, processes, mine);
  HostExecutor threads(all);
  train_on(training, step, program, threads, theirs);
  bool same = true;
  for (const auto& [rank, slice] : step.persistent)
    if (rank == world.rank())
      same = same && std::ranges::equal(mine(rank, slice), theirs(rank, slice));
  for (const BoundStep::LossSlot& slot : step.losses)
    if (slot.rank == world.rank())
      same = same && std::ranges::equal(mine(slot.rank, slot.slice), theirs(slot.rank, slot.slice));
  return same;
}

int run() {
  const MpiWorld world;
  std::int64_t wrong = 0, done = 0;
  for (const TrainingCase& which : training_cases()) {
    if (which.training.ranks > world.size()) continue;
    const bool same = is_same(world, which.training);
    if (!same) fmt::print("{}: {} differs\n", world.name(world.rank()), which.name);
    wrong += !same;
    ++done;
  }
  std::vector<std::int64_t> worst{wrong};
  world.largest(worst, [] {});
  if (world.rank() == Rank{0})
    fmt::print("{} trainings on {} processes, {} wrong\n", done, world.size(), worst.front());
  return worst.front() == 0 && done > 5 ? 0 : 1;
}

}  // namespace
}  // namespace rehearse

int main() { return rehearse::run(); }
