// Under mpirun: every collective as MPI's own, on numbers whose sums are exact: over all ranks and
// over some in another order, narrow numbers, and two streams whose collectives ranks begin in
// different orders.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/host/collective_check.hpp"
#include "kernels/mpi/mpi_executor.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "strategies/collectives/expand.hpp"
#include "topology/generators.hpp"

namespace rehearse {
namespace {

struct Case {
  std::vector<Rank> group;
  CollectiveCheck check;
};

Collective collective(const Case& what, std::uint32_t first_buffer) {
  const Bytes size{static_cast<std::int64_t>(what.check.elements) *
                   bytes_of(what.check.numbers).count()};
  return {.kind = what.check.kind,
          .group = what.group,
          .data = {Buffer{first_buffer}, Bytes{0}, size},
          .result = {Buffer{first_buffer + 1}, Bytes{0}, size},
          .root = what.check.root,
          .numbers = what.check.numbers};
}

/// Wrong numbers of this rank, after the collective on each of the streams. On every other rank
/// the first stream begins later.
std::size_t wrong_numbers(const MpiWorld& world, const Case& what, std::uint32_t streams) {
  const Topology machine = star(world.size(), {10.0_GBps, 1_us});
  Routing routing(machine);
  Program whole;
  const Label label{whole.name("collective")};
  for (std::uint32_t s = 0; s < streams; ++s) {
    std::vector<OpId> after;
    for (const Rank rank : what.group)
      if (index(rank) % 2 == s % 2)
        after.push_back(whole.add_compute(rank, Stream::compute, label, {.fixed = 2000_us}, {}));
    whole.add_collective(comm_lane(s), label, collective(what, 2 * s), after);
  }
  const Expanded split = split_collectives(whole, routing);
  HostMemory memory(split.program, world.rank());
  const auto me = std::find(what.group.begin(), what.group.end(), world.rank());
  const auto member = static_cast<std::size_t>(me - what.group.begin());
  for (std::uint32_t b = 0; b < 2 * streams; ++b)
    memory.cover(world.rank(), {Buffer{b}, Bytes{0}, what.check.room()});
  const auto bytes = [&](std::uint32_t b) { return memory.buffer(world.rank(), Buffer{b}); };
  for (std::uint32_t s = 0; s < streams && me != what.group.end(); ++s)
    what.check.fill(member, bytes(2 * s), bytes(2 * s + 1));
  HostOptions how{.compute = HostCompute::paced, .parts = split.parts};
  how.pace.resize(split.program.size());
  for (std::size_t i = 0; i < how.pace.size(); ++i)
    how.pace[i] = split.program.compute(split.program.ops()[i]).fixed;
  MpiExecutor executor(world, split.program, memory, how);
  executor.run(split.program);
  std::size_t wrong = 0;
  for (std::uint32_t s = 0; s < streams && me != what.group.end(); ++s)
    wrong += what.check.wrong(member, bytes(2 * s), bytes(2 * s + 1));
  return wrong;
}

int run() {
  const MpiWorld world;
  std::vector<Rank> all, some;
  for (std::size_t r = 0; r < world.size(); ++r) all.push_back(static_cast<Rank>(r));
  for (std::size_t r = world.size(); r-- > 1;) some.push_back(static_cast<Rank>(r));
  std::int64_t wrong = 0, done = 0;
  for (const CollectiveKind kind : collective_kinds())
    for (const std::vector<Rank>& group : {all, some})
      for (const auto& [elements, numbers, streams] :
           {std::tuple{1UL, Precision::fp32, 1U}, std::tuple{1001UL, Precision::fp32, 2U},
            std::tuple{262'147UL, Precision::fp32, 1U}, std::tuple{4096UL, Precision::fp16, 1U},
            std::tuple{4099UL, Precision::bf16, 2U}}) {
        if (group.size() < 2) continue;
        const auto root = static_cast<std::uint32_t>(group.size() - 1);
        const Case what{group, {kind, group.size(), root, elements, numbers}};
        const std::size_t mine = wrong_numbers(world, what, streams);
        if (mine > 0)
          fmt::print("{}: {} of {} numbers among {}: {} wrong\n", world.name(world.rank()),
                     to_string(kind), elements, group.size(), mine);
        wrong += static_cast<std::int64_t>(mine);
        ++done;
      }
  std::vector<std::int64_t> worst{wrong};
  world.largest(worst, [] {});
  if (world.rank() == Rank{0})
    fmt::print("{} collectives of MPI on {} processes, {} wrong\n", done, world.size(),
               worst.front());
  return worst.front() == 0 && done > 30 ? 0 : 1;
}

}  // namespace
}  // namespace rehearse

int main() { return rehearse::run(); }
