// The race check against brute force on random programs, and against edges taken away.
#include "sim/verify.hpp"

#include <gtest/gtest.h>

#include "sim/stream_table.hpp"
#include "tests/support/random_slices.hpp"

namespace rehearse {
namespace {

// By definition: reach[b][a] when a must end before b begins. Edges point back in these programs.
std::vector<std::vector<bool>> reachability(const Program& program) {
  std::vector<std::vector<bool>> reach(program.size(), std::vector<bool>(program.size()));
  const auto join = [&](std::size_t b, std::size_t a) {
    reach[b][a] = true;
    for (std::size_t i = 0; i < a; ++i)
      if (reach[a][i]) reach[b][i] = true;
  };
  for (std::size_t b = 0; b < program.size(); ++b) {
    const Program::Op& op = program.ops()[b];
    for (const OpId input : program.after(static_cast<OpId>(b))) join(b, index(input));
    for (std::size_t a = 0; a < b; ++a) {
      const Program::Op& other = program.ops()[a];
      if (other.stream != op.stream) continue;
      for (const Rank rank : ranks_of(program, op))
        for (const Rank theirs : ranks_of(program, other))
          if (rank == theirs) join(b, a);
    }
  }
  return reach;
}

bool conflict(const Program& program, OpId a, OpId b) {
  for (const Touch& x : touches_of(program, a))
    for (const Touch& y : touches_of(program, b))
      if (conflict(x, y)) return true;
  return false;
}

bool races_by_brute_force(const Program& program) {
  const auto reach = reachability(program);
  for (std::size_t b = 0; b < program.size(); ++b)
    for (std::size_t a = 0; a < b; ++a)
      if (!reach[b][a] && conflict(program, static_cast<OpId>(a), static_cast<OpId>(b)))
        return true;
  return false;
}

// Adds the edges that the conflicts ask for, and no others.
Program without_races(const Program& racy) {
  Program program = racy;
  for (std::size_t b = 0; b < program.size(); ++b) {
    const auto id = static_cast<OpId>(b);
    std::vector<OpId> after(program.after(id).begin(), program.after(id).end());
    for (std::size_t a = b; a-- > 0;) {
      const auto earlier = static_cast<OpId>(a);
      if (!conflict(program, earlier, id)) continue;
      if (reachability(program)[b][a]) continue;
      after.push_back(earlier);
      program.set_after(id, after);
    }
  }
  return program;
}

TEST(VerifyProperty, AgreesWithBruteForce) {
  std::size_t racy = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Draw draw{seed};
    const Program program = random_sliced_program(draw);
    const bool expected = races_by_brute_force(program);
    racy += expected;
    ASSERT_EQ(verify(program).has_value(), expected) << "seed " << seed;
    if (!expected) continue;
    const auto reach = reachability(program);
    for (const Race& race : find_races(program)) {
      ASSERT_TRUE(conflict(program, race.first, race.second)) << "seed " << seed;
      ASSERT_FALSE(reach[index(race.second)][index(race.first)]) << "seed " << seed;
    }
  }
  EXPECT_GT(racy, 500u);
  EXPECT_LT(racy, 2900u);
}

TEST(VerifyProperty, EveryEdgeThatAConflictNeedsIsMissed) {
  std::size_t dropped = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Draw draw{seed};
    const Program program = without_races(random_sliced_program(draw));
    ASSERT_EQ(verify(program), std::nullopt) << "seed " << seed;
    for (std::size_t b = 0; b < program.size(); ++b) {
      const auto id = static_cast<OpId>(b);
      for (const OpId input : program.after(id)) {
        Program broken = program;
        std::vector<OpId> after(program.after(id).begin(), program.after(id).end());
        std::erase(after, input);
        broken.set_after(id, after);
        const bool expected = races_by_brute_force(broken);
        ASSERT_EQ(verify(broken).has_value(), expected) << "seed " << seed << " op " << b;
        dropped += expected;
      }
    }
  }
  EXPECT_GT(dropped, 100u) << "the test has lost its bite";
}

}  // namespace
}  // namespace rehearse
