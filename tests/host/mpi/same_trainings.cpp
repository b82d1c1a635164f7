// Under mpirun: a training of every kind of strategy with a process for each rank; each process
// then runs the same one with threads, and compares all that its rank holds bit by bit. With the
// word `library`: the collectives of the processes are MPI's own, and equal up to rounding.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "kernels/mpi/mpi_executor.hpp"
#include "strategies/collectives/expand.hpp"
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

/// Numbers below `least` need not be nearer than that one.
struct Bound {
  double relative, least;
};

/// The same bits, or numbers near each other.
template <class Number>
bool is_near(std::span<const std::byte> mine, std::span<const std::byte> theirs, Bound bound) {
  bool near = mine.size() == theirs.size();
  for (std::size_t i = 0; near && i + sizeof(Number) <= mine.size(); i += sizeof(Number)) {
    Number a = 0, b = 0;
    std::memcpy(&a, mine.data() + i, sizeof(a));
    std::memcpy(&b, theirs.data() + i, sizeof(b));
    near = std::memcmp(&a, &b, sizeof(a)) == 0 ||
           std::abs(a - b) <= bound.relative * std::max<double>(bound.least, std::abs(b));
  }
  return near;
}

bool is_same(const MpiWorld& world, const TrainingCase& which, bool by_library) {
  const SmallTraining& training = which.training;
  // Sums of four 16-bit numbers round three times by 2^-11 of what they have come to, which may be
  // much more than is left of it in the end.
  const Bound bound =
      which.name.find("fp16") == std::string::npos ? Bound{1e-5, 1e-2} : Bound{1e-3, 1e-1};
  const BoundStep step = bound_step(training);
  const Topology topology = calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  const Program program = expand_collectives(step.program(), routing, {.algorithm = "ring"});
  const std::optional<Expanded> whole =
      by_library ? std::optional{split_collectives(step.program(), routing)} : std::nullopt;
  const Program& own_program = whole ? whole->program : program;
  HostMemory own(own_program, world.rank()), all(program);
  const RankMemory mine = memory_of(own, world.rank()), theirs = memory_of(all, {});
  fill_parameters(step, training.numbers, mine);
  fill_parameters(step, training.numbers, theirs);
  for (const auto& [rank, slice] : step.persistent) mine(rank, slice), theirs(rank, slice);
  HostOptions how;
  if (whole) how.parts = whole->parts;
  MpiExecutor processes(world, own_program, own, how);
  train_on(training, step, own_program, processes, mine);
  HostExecutor threads(all);
  train_on(training, step, program, threads, theirs);
  bool same = true;
  for (const auto& [rank, slice] : step.persistent) {
    if (rank != world.rank()) continue;
    const auto a = mine(rank, slice), b = theirs(rank, slice);
    same = same && (by_library ? is_near<float>(a, b, bound) : std::ranges::equal(a, b));
  }
  for (const BoundStep::LossSlot& slot : step.losses) {
    if (slot.rank != world.rank()) continue;
    const auto a = mine(slot.rank, slot.slice), b = theirs(slot.rank, slot.slice);
    same = same && (by_library ? is_near<double>(a, b, bound) : std::ranges::equal(a, b));
  }
  return same;
}

int run(bool by_library) {
  const MpiWorld world;
  std::int64_t wrong = 0, done = 0;
  for (const TrainingCase& which : training_cases()) {
    if (which.training.ranks > world.size()) continue;
    const bool same = is_same(world, which, by_library);
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

int main(int count, char** words) {
  return rehearse::run(count > 1 && std::string_view{words[1]} == "library");
}
