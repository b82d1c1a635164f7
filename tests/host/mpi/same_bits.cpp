// Under mpirun: every collective by every algorithm with a process for each rank, on numbers that
// round; each process then runs the same program with threads and compares its buffers bit by bit.
#include <fmt/format.h>

#include <cstring>

#include "kernels/mpi/mpi_executor.hpp"
#include "strategies/collectives/rehearsal.hpp"
#include "topology/generators.hpp"

namespace rehearse {
namespace {

void fill(HostMemory& memory, Rank rank) {
  for (std::uint32_t b = 0; b < 8; ++b) {
    const std::span<std::byte> bytes = memory.buffer(rank, Buffer{b});
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      const float number = 1.0F / static_cast<float>(1 + (i + 7 * index(rank) + b) % 1013);
      std::memcpy(bytes.data() + i, &number, 4);
    }
  }
}

/// Whether this rank's buffers are the same after both runs.
bool is_same(const MpiWorld& world, const Program& program, std::size_t ranks) {
  HostMemory own(program, world.rank()), all(program);
  fill(own, world.rank());
  for (std::size_t r = 0; r < ranks; ++r) fill(all, static_cast<Rank>(r));
  MpiExecutor executor(world, program, own);
  const Timeline timeline = executor.run(program);
  HostExecutor(all).run(program);
  bool same = timeline.spans.size() == program.size();
  for (std::size_t i = 0; i < program.size(); ++i)
    for (const OpId input : program.after(static_cast<OpId>(i)))
      same = same && timeline.spans[index(input)].end <= timeline.spans[i].begin;
  for (std::uint32_t b = 0; b < 8; ++b) {
    const auto mine = own.buffer(world.rank(), Buffer{b}),
               theirs = all.buffer(world.rank(), Buffer{b});
    same = same && mine.size() == theirs.size() &&
           std::equal(mine.begin(), mine.end(), theirs.begin());
  }
  return same;
}

int run() {
  const MpiWorld world;
  const Topology machine = star(world.size(), {10.0_GBps, 1_us});
  Routing routing(machine);
  std::int64_t wrong = 0, done = 0;
  for (const CollectiveKind kind : collective_kinds())
    for (const Algorithm& how : algorithms())
      for (const Bytes size : {4_B, 4'004_B, 1_MiB}) {
        CollectiveShape shape{.kind = kind};
        for (std::size_t r = 0; r < world.size(); ++r) shape.group.push_back(static_cast<Rank>(r));
        if (how.refusal(shape, machine)) continue;
        const CollectiveRehearsal rehearsal(how, shape, routing, Detail::transfers);
        const bool same = is_same(world, rehearsal.program(size), world.size());
        if (!same)
          fmt::print("{}: {} {} of {} bytes differs\n", world.name(world.rank()), how.name,
                     to_string(kind), size.count());
        wrong += !same;
        ++done;
      }
  std::vector<std::int64_t> worst{wrong};
  world.largest(worst, [] {});
  if (world.rank() == Rank{0})
    fmt::print("{} collectives on {} processes, {} wrong\n", done, world.size(), worst.front());
  return worst.front() == 0 && done > 10 ? 0 : 1;
}

}  // namespace
}  // namespace rehearse

int main() { return rehearse::run(); }
