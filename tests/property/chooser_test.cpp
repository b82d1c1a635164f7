// `auto` is as certain as a single algorithm: neither threads nor what it remembers change what it
// finds, and it takes the fastest, or what the machine's library takes.
#include "strategies/collectives/choose.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/collectives.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::chooser_test {
namespace {

struct Found {
  std::string_view algorithm;
  std::uint16_t protocol = 0;
  Time time;
  std::uint64_t transfers = 0, events = 0;
  friend bool operator==(const Found&, const Found&) = default;
};

constexpr Bytes sizes[] = {0_B, 8_B, 4_KiB, Bytes{1'000'003}, 64_MiB, 1_GiB};

std::vector<Found> find(const Topology& machine, CollectiveKind kind, std::size_t threads,
                        std::span<const Bytes> in_order) {
  Routing routing(machine);
  const Roofline cost;
  FastSimulator engine(routing, cost);
  CollectiveChooser chooser(shape_of(kind, machine), routing,
                            {.algorithms = {}, .protocols = {}, .threads = threads});
  std::vector<Found> found;
  for (const Bytes size : in_order)
    for (const Candidate& each : chooser.at(size, engine))
      found.push_back({each.algorithm, each.protocol, each.result.time, each.result.transfers,
                       each.result.events});
  return found;
}

std::vector<Topology> machines() {
  return {load_cluster("dgx-1"), load_cluster("dgx-h100", {4, std::nullopt}),
          load_cluster("summit", {10, std::nullopt}),
          parse_cluster("extends = 'dgx-a100'\nnodes = 2\n[library]\nname = 'none'\n", "any.toml"),
          parse_cluster("extends = 'p40-8'\nnodes = 5\n[library]\nname = 'none'\n", "any.toml")};
}

TEST(Chooser, ThreadsChangeNothing) {
  for (const Topology& machine : machines())
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
      const std::vector<Found> alone = find(machine, kind, 1, sizes);
      ASSERT_GT(alone.size(), 6u);
      for (const std::size_t threads : {2, 3, 16})
        EXPECT_EQ(find(machine, kind, threads, sizes), alone)
            << threads << " threads, " << to_string(kind) << " on " << machine.name;
    }
}

TEST(Chooser, RememberingChangesNothing) {
  for (const Topology& machine : machines())
    for (const Bytes size : sizes) {
      // Alone, and after every other size has been asked for, twice.
      const std::vector<Bytes> once{size};
      std::vector<Bytes> late(std::begin(sizes), std::end(sizes));
      late.push_back(size);
      const std::vector<Found> fresh = find(machine, CollectiveKind::all_reduce, 1, once);
      const std::vector<Found> all = find(machine, CollectiveKind::all_reduce, 1, late);
      ASSERT_GE(all.size(), fresh.size());
      for (std::size_t i = 0; i < fresh.size(); ++i) {
        const Found& again = all[all.size() - fresh.size() + i];
        EXPECT_EQ(again.algorithm, fresh[i].algorithm);
        EXPECT_EQ(again.protocol, fresh[i].protocol);
        EXPECT_EQ(again.time, fresh[i].time) << fresh[i].algorithm << ", " << size.count() << " B";
        EXPECT_EQ(again.transfers, 0u) << "it was remembered";
      }
    }
}

TEST(Chooser, TheFastestComesFirst) {
  for (const Topology& machine : machines()) {
    Routing routing(machine);
    const Roofline cost;
    FastSimulator engine(routing, cost);
    CollectiveChooser chooser(shape_of(CollectiveKind::all_reduce, machine), routing, {});
    for (const Bytes size : sizes) {
      const std::vector<Candidate> candidates = chooser.at(size, engine);
      // Where a library chooses, its choice is before them.
      EXPECT_TRUE(std::is_sorted(
          candidates.begin() + (machine.library.name.empty() ? 0 : 1), candidates.end(),
          [](const Candidate& a, const Candidate& b) { return a.result.time < b.result.time; }));
      for (const Candidate& each : candidates) {
        EXPECT_GE(each.result.time, chooser.bound(size).least()) << each.algorithm;
        // `best` leaves out who cannot win by this; roundings of a picosecond a transfer aside.
        const auto least = chooser.rehearsal(each.algorithm).least(size, each.protocol);
        EXPECT_LE(least.time.seconds().count(), each.result.time.seconds().count() * (1 + 1e-6))
            << each.algorithm << ", " << size.count() << " B";
      }
    }
  }
}

TEST(Chooser, KnowsTheBestWithoutSimulatingAll) {
  for (const Topology& machine : machines()) {
    Routing routing(machine);
    const Roofline cost;
    FastSimulator engine(routing, cost);
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast}) {
      CollectiveChooser all(shape_of(kind, machine), routing, {});
      CollectiveChooser some(shape_of(kind, machine), routing, {});
      for (const Bytes size : sizes) {
        const Candidate first = all.at(size, engine).front(), best = some.best(size, engine);
        EXPECT_EQ(best.algorithm, first.algorithm) << size.count() << " B";
        EXPECT_EQ(best.protocol, first.protocol) << size.count() << " B";
        EXPECT_EQ(best.result.time, first.result.time) << size.count() << " B";
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::chooser_test
