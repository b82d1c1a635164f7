// The edges of every algorithm (no bytes, one rank, two ranks, sizes that do not divide), and the
// formulas of the collectives that are no all-reduce.
#include <gtest/gtest.h>

#include "tests/support/collectives.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse::edges_test {
namespace {

constexpr Cable cable{50.0_GBps, 2_us};
constexpr Time alpha = 4_us;  // over a star's switch: two cables

std::vector<Topology> machines() {
  return {star(2, cable, true),      star(6, cable, true),
          star(8, cable, true),      ring(5, cable),
          fully_connected(4, cable), load_cluster("dgx-h100", {2, std::nullopt}),
          load_cluster("dgx-1"),     load_cluster("summit", {3, std::nullopt})};
}

/// Calls check(algorithm, kind, machine) for all that apply.
template <class Check>
std::size_t for_each_that_applies(const std::vector<Topology>& where, Check check) {
  std::size_t done = 0;
  for (const Topology& machine : where)
    for (const CollectiveKind kind : collective_kinds())
      for (const Algorithm& how : algorithms()) {
        if (how.refusal(shape_of(kind, machine), machine)) continue;
        SCOPED_TRACE(std::string(how.name) + " " + std::string(to_string(kind)) + " on " +
                     std::to_string(machine.rank_count()) + " ranks of " + machine.name);
        check(how, kind, machine);
        ++done;
      }
  return done;
}

Time on_star(Bytes bytes) { return Time::round(bytes / cable.bandwidth); }

// The longest of n parts in whole elements of 4 bytes; odd bytes are with the last part.
Bytes longest_part(Bytes size, std::int64_t n) {
  const std::int64_t elements = size.count() / 4, odd = size.count() % 4;
  return Bytes{std::max((elements + n - 1) / n * 4, elements / n * 4 + odd)};
}

TEST(Edges, OneRankTakesNoTime) {
  const std::size_t done = for_each_that_applies(
      {star(1, cable, true), load_cluster("dgx-h100", {1, 1})},
      [](const Algorithm& how, CollectiveKind kind, const Topology& machine) {
        for (const Bytes size : {0_B, 3_B, 1_GiB})
          for (const Detail detail : {Detail::folded, Detail::transfers})
            EXPECT_EQ(time_of(how.name, kind, machine, size, detail), Time{}) << size.count();
      });
  EXPECT_GE(done, 20u);
}

TEST(Edges, NoBytesCostLatencyAlone) {
  for_each_that_applies(machines(), [](const Algorithm& how, CollectiveKind kind,
                                       const Topology& machine) {
    Routing routing(machine);
    const CollectiveRehearsal rehearsal(how, shape_of(kind, machine), routing, Detail::transfers);
    const Time none = time_of(how.name, kind, machine, 0_B);
    EXPECT_GT(none, Time{});
    // No chain of transfers is longer than the collective has transfers.
    const auto transfers = static_cast<std::int64_t>(rehearsal.program(0_B).transfer_count());
    EXPECT_LE(none - rehearsal.launch(0), transfers * rehearsal.alpha());
    EXPECT_LE(none, time_of(how.name, kind, machine, 4_B));
  });
}

TEST(Edges, TwoRanksExchangeOverOnePair) {
  const Topology pair = star(2, cable);
  for (const Bytes size : {0_B, 8_B, 1_MiB, Bytes{1'000'000'000}}) {
    const Time half = alpha + on_star(Bytes{size.count() / 2});
    for (const std::string_view name : {"ring", "halving_doubling"}) {
      EXPECT_EQ(time_of(name, CollectiveKind::all_reduce, pair, size), 2 * half) << name;
      EXPECT_EQ(time_of(name, CollectiveKind::reduce_scatter, pair, size), half) << name;
      EXPECT_EQ(time_of(name, CollectiveKind::all_gather, pair, size), half) << name;
    }
    EXPECT_EQ(time_of("pairwise", CollectiveKind::all_to_all, pair, size), half);
    EXPECT_EQ(time_of("pairwise", CollectiveKind::send_recv, pair, size), alpha + on_star(size));
  }
}

TEST(Edges, WhatDoesNotDivideTravelsWithTheLongestPart) {
  for (const std::int64_t n : {2, 3, 5, 7, 8, 13}) {
    const Topology machine = star(static_cast<std::size_t>(n), cable);
    for (const std::int64_t size :
         std::initializer_list<std::int64_t>{1, 3, 4, 5, 8, 9, 4 * n - 1, 4 * n + 4, 999'999})
      EXPECT_EQ(time_of("ring", CollectiveKind::all_reduce, machine, Bytes{size}),
                2 * (n - 1) * (alpha + on_star(longest_part(Bytes{size}, n))))
          << n << " ranks, " << size << " B";
  }
}

TEST(Edges, UnevenSizesNeverBeatSmallerOnes) {
  // Padding may make a size as slow as the next that divides, never slower.
  for_each_that_applies(
      machines(), [](const Algorithm& how, CollectiveKind kind, const Topology& machine) {
        const auto unit = static_cast<std::int64_t>(4 * machine.rank_count());
        const auto time = [&](std::int64_t size) {
          return time_of(how.name, kind, machine, Bytes{size}, Detail::folded).ps();
        };
        EXPECT_LE(time(unit), time(unit + 1));
        EXPECT_LE(time(unit + 1), time(2 * unit));
        EXPECT_GT(time(1'000'003), 0);
      });
}

TEST(Halves, ReduceScatterAndAllGatherMakeAllReduce) {
  std::size_t done = 0;
  for (const Topology& machine : machines())
    for (const std::string_view name : {"ring", "halving_doubling", "hierarchical"})
      for (const Bytes size : {0_B, 64_B, 3_MiB, 1_GiB}) {
        const auto half = [&](CollectiveKind kind) { return time_of(name, kind, machine, size); };
        const auto refused = [&](CollectiveKind kind) {
          return algorithm(name).refusal(shape_of(kind, machine), machine).has_value();
        };
        if (refused(CollectiveKind::reduce_scatter) || refused(CollectiveKind::all_gather))
          continue;
        // One collective is launched once.
        Routing routing(machine);
        const Time launch =
            CollectiveRehearsal(algorithm(name), shape_of(CollectiveKind::all_reduce, machine),
                                routing, Detail::folded)
                .launch(0);
        const Time sum =
            half(CollectiveKind::reduce_scatter) + half(CollectiveKind::all_gather) - launch;
        SCOPED_TRACE(std::string(name) + " on " + std::to_string(machine.rank_count()) +
                     " ranks of " + machine.name + ", " + std::to_string(size.count()) + " B");
        // An all-reduce has no owner to obey, so its halving may begin with the nearest partner;
        // on a machine with nodes that is quicker.
        if (name == "halving_doubling" && machine.node_count() > 1)
          EXPECT_LE(half(CollectiveKind::all_reduce), sum);
        else
          EXPECT_EQ(half(CollectiveKind::all_reduce), sum);
        ++done;
      }
  EXPECT_GE(done, 40u);
}

TEST(Chain, BroadcastAndReduceArePipelines) {
  for (const std::int64_t n : {2, 3, 4, 8, 13, 64}) {
    const Topology machine = star(static_cast<std::size_t>(n), cable);
    Routing routing(machine);
    for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce})
      for (const Bytes size : {0_B, 8_B, Bytes{65'540}, 1_MiB, 64_MiB, 1_GiB}) {
        const CollectiveRehearsal rehearsal(algorithm("ring"), shape_of(kind, machine, 1), routing,
                                            Detail::transfers);
        const auto transfers = static_cast<std::int64_t>(rehearsal.program(size).transfer_count());
        ASSERT_EQ(transfers % (n - 1), 0);
        const std::int64_t pieces = transfers / (n - 1);
        const auto formula = [&](std::int64_t c) {
          return (n - 1) * alpha + (n - 2 + c) * on_star(longest_part(size, c));
        };
        const Time expected = formula(pieces);
        for (const Detail detail : {Detail::folded, Detail::transfers})
          EXPECT_EQ(time_of("ring", kind, machine, size, detail, 1), expected)
              << "(n-1) alpha + (n-2+C) S / (C beta), n = " << n << ", C = " << pieces
              << ", S = " << size.count();
        for (std::int64_t other = 1; other <= 256; ++other)
          EXPECT_LE(expected.ps(), formula(other).ps() * 103 / 100) << "no other C is much better";
      }
  }
}

TEST(Pairwise, AllToAllFillsEveryCable) {
  for (const std::int64_t n : {2, 3, 4, 8, 16, 33}) {
    const Topology machine = star(static_cast<std::size_t>(n), cable);
    for (const Bytes block : {4_B, 1_KiB, 1_MiB}) {
      const Time expected = alpha + on_star((n - 1) * block);
      const Time time = time_of("pairwise", CollectiveKind::all_to_all, machine, n * block);
      EXPECT_LE(std::abs((time - expected).ps()), 1)
          << "alpha + (n-1)/n S / beta, n = " << n << ", S = " << n * block.count();
    }
  }
}

TEST(Pairwise, SendRecvIsOneTransfer) {
  for (const std::size_t n : {2, 3, 16, 64})
    for (const Bytes size : {0_B, 1_B, Bytes{999'999}, 1_GiB})
      EXPECT_EQ(time_of("pairwise", CollectiveKind::send_recv, star(n, cable), size),
                alpha + on_star(size))
          << "alpha + S / beta, whatever n: here " << n;
}

}  // namespace
}  // namespace rehearse::edges_test
