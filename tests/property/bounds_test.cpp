// No algorithm beats the lower bounds, on any machine and at any size; and the bounds are no empty
// words: on simple machines the best algorithm comes close to them.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/engine/collective_bound.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/random_program.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse::bounds_test {
namespace {

// Checks every algorithm and returns the best time over the bound.
double best_over_bound(const CollectiveShape& shape, const Topology& machine, Bytes size) {
  const CollectiveBounds bounds{shape.kind, shape.group, machine, shape.root};
  Routing routing{machine};
  const Roofline cost;
  FastSimulator engine{routing, cost};
  double best = 1e9;
  for (const Algorithm& how : algorithms()) {
    if (how.refusal(shape, machine)) continue;
    CollectiveRehearsal rehearsal{how, shape, routing, Detail::folded};
    const Time time = rehearsal.run(size, engine).time;
    EXPECT_NO_THROW(bounds.check(size, time)) << how.name;
    const double least = bounds.at(size).least().seconds().count();
    if (least > 0) best = std::min(best, time.seconds().count() / least);
  }
  return best;
}

TEST(Bounds, HoldForEveryAlgorithmOnEveryKindOfMachine) {
  const Cable cable{50.0_GBps, 1_us}, exact{64.0_GBps, Time{}};
  const std::vector<std::size_t> square{3, 4};
  std::vector<Topology> machines{ring(7, cable),
                                 star(8, cable),
                                 star(6, cable, true),
                                 fully_connected(5, exact),
                                 star(16, exact),
                                 torus(square, cable),
                                 cluster(star(4, cable), 4, FatTree{.cable = cable, .radix = 8})};
  for (const char* name : {"dgx-h100", "dgx-1", "summit"})
    machines.push_back(load_cluster(name, {2, std::nullopt}));
  machines.push_back(load_cluster("gb200-nvl72", {1, std::nullopt}));
  for (const Topology& machine : machines)
    for (const CollectiveKind kind : collective_kinds())
      for (const Bytes size : {8_B, 1_MiB, 8_GiB}) {
        SCOPED_TRACE(machine.name + ", " + std::to_string(machine.rank_count()) + " ranks, " +
                     std::string{to_string(kind)} + ", " + std::to_string(size.count()) + " B");
        best_over_bound(shape_of(kind, machine), machine, size);
      }
}

TEST(Bounds, HoldOnRandomMachinesWithRandomGroupsAndRoots) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Draw draw{seed};
    const Topology machine = random_topology(draw);
    for (const CollectiveKind kind : collective_kinds()) {
      CollectiveShape shape = shape_of(kind, machine, draw.below(3));
      shape.group.resize(draw.between(1, shape.group.size()));
      shape.root = static_cast<std::uint32_t>(draw.below(shape.group.size()));
      const Bytes size{draw.of<std::int64_t>({3, 64, 100'000, 10'000'001})};
      SCOPED_TRACE("seed " + std::to_string(seed) + " " + std::string{to_string(kind)} + ", " +
                   std::to_string(size.count()) + " B");
      best_over_bound(shape, machine, size);
    }
  }
}

TEST(Bounds, AreReachedOnASwitch) {
  const Topology machine = star(8, {50.0_GBps, 1_us});
  for (const CollectiveKind kind : collective_kinds())
    EXPECT_LT(best_over_bound(shape_of(kind, machine), machine, 1_GiB), 1.05) << to_string(kind);
}

}  // namespace
}  // namespace rehearse::bounds_test
