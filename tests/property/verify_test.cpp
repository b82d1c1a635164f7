// The race check against brute force on random programs, and against edges taken away.
#include "sim/program/verify.hpp"

#include <gtest/gtest.h>

#include "sim/program/stream_table.hpp"
#include "tests/support/random_slices.hpp"

namespace rehearse::verify_test {
namespace {

bool is_posted(const Program& program, std::size_t i) {
  const Program::Op& op = program.ops()[i];
  return op.kind == WorkKind::transfer && program[program.transfer(op).connection].posted;
}

bool share_a_stream(const Program& program, std::size_t a, std::size_t b) {
  const Program::Op &x = program.ops()[a], &y = program.ops()[b];
  if (x.stream != y.stream || is_queue(x.stream)) return false;
  for (const Rank rank : ranks_of(program, x))
    for (const Rank theirs : ranks_of(program, y))
      if (rank == theirs) return true;
  return false;
}

bool share_a_queue(const Program& program, std::size_t a, std::size_t b) {
  const Program::Op &x = program.ops()[a], &y = program.ops()[b];
  return is_queue(x.stream) && x.stream == y.stream && x.rank == y.rank;
}

bool share_a_posted_way(const Program& program, std::size_t a, std::size_t b) {
  return is_posted(program, a) && is_posted(program, b) && share_a_stream(program, a, b) &&
         program.transfer(program.ops()[a]).connection ==
             program.transfer(program.ops()[b]).connection;
}

// By definition, over three moments of each op: it begins, its stream is free (and it has read), it
// ends (and has written). Only a posted transfer's last two are apart. Edges point back here.
class Moments {
 public:
  enum Moment : std::size_t { begins, leaves, ends };

  explicit Moments(const Program& program)
      : program_{program}, reach_(3 * program.size(), std::vector<bool>(3 * program.size())) {
    for (std::size_t b = 0; b < program.size(); ++b) {
      for (const OpId input : program.after(static_cast<OpId>(b)))
        join({b, begins}, {index(input), ends});
      for (std::size_t a = 0; a < b; ++a)
        if (share_a_stream(program, a, b)) join({b, begins}, {a, leaves});
      join({b, leaves}, {b, begins});
      if (!is_posted(program, b)) reach_[at({b, leaves})][at({b, ends})] = true;
      join({b, ends}, {b, leaves});
      for (std::size_t a = 0; a < b; ++a)
        if (share_a_posted_way(program, a, b)) join({b, ends}, {a, ends});
    }
  }

  /// Op a has read what it reads, or written what it writes, before b begins to touch the same.
  bool ordered(std::size_t a, bool a_writes, std::size_t b, bool b_writes) const {
    if (a_writes && b_writes && share_a_posted_way(program_, a, b)) return true;
    if (share_a_queue(program_, a, b) && !is_posted(program_, a) && !is_posted(program_, b))
      return true;
    return reach_[at({b, begins})][at({a, a_writes ? ends : leaves})];
  }

 private:
  using Node = std::pair<std::size_t, Moment>;
  static std::size_t at(Node node) { return 3 * node.first + node.second; }
  void join(Node later, Node earlier) {
    const std::size_t b = at(later), a = at(earlier);
    reach_[b][a] = true;
    for (std::size_t i = 0; i < reach_.size(); ++i)
      if (reach_[a][i]) reach_[b][i] = true;
  }

  const Program& program_;
  std::vector<std::vector<bool>> reach_;  // [later][earlier]
};

bool race(const Program& program, const Moments& moments, std::size_t a, std::size_t b) {
  for (const Touch& x : touches_of(program, static_cast<OpId>(a)))
    for (const Touch& y : touches_of(program, static_cast<OpId>(b)))
      if (conflict(x, y) && !moments.ordered(a, x.writes, b, y.writes)) return true;
  return false;
}

bool conflict(const Program& program, std::size_t a, std::size_t b) {
  for (const Touch& x : touches_of(program, static_cast<OpId>(a)))
    for (const Touch& y : touches_of(program, static_cast<OpId>(b)))
      if (conflict(x, y)) return true;
  return false;
}

bool races_by_brute_force(const Program& program) {
  const Moments moments{program};
  for (std::size_t b = 0; b < program.size(); ++b)
    for (std::size_t a = 0; a < b; ++a)
      if (race(program, moments, a, b)) return true;
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
      if (!conflict(program, a, b) || !race(program, Moments{program}, a, b)) continue;
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
    const Moments moments{program};
    for (const Race& found : find_races(program))
      ASSERT_TRUE(race(program, moments, index(found.first), index(found.second)))
          << "seed " << seed << ": " << describe(program, found);
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
}  // namespace rehearse::verify_test
