// Waits, the critical path and the fingerprint of hand-made timelines.
#include "sim/program/timeline.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rehearse::timeline_test {
namespace {

// a ──▶ b (edge), c after b on b's stream; d aside.
struct Chain {
  Program program;
  Timeline timeline;
  OpId a, b, c, d;

  Chain() {
    const Label label{program.name("op"), Label::no_number};
    a = program.add_marker(Rank{0}, Stream::compute, label, {});
    b = program.add_marker(Rank{1}, Stream::compute, label, std::array{a});
    c = program.add_marker(Rank{1}, Stream::compute, label, std::array{a});
    d = program.add_marker(Rank{2}, Stream::compute, label, {});
    timeline.spans = {{0_ns, 5_ns, no_op}, {5_ns, 9_ns, a}, {9_ns, 12_ns, b}, {0_ns, 12_ns, no_op}};
    timeline.makespan = 12_ns;
  }
};

TEST(Timeline, SaysWhyAnOpWaited) {
  const Chain chain;
  EXPECT_EQ(wait_of(chain.program, chain.timeline, chain.a), Wait::nothing);
  EXPECT_EQ(wait_of(chain.program, chain.timeline, chain.b), Wait::input);
  EXPECT_EQ(wait_of(chain.program, chain.timeline, chain.c), Wait::stream);
}

TEST(Timeline, TheCriticalPathEndsWithTheFirstOfTheLast) {
  const Chain chain;
  EXPECT_EQ(critical_path(chain.timeline), (std::vector<OpId>{chain.a, chain.b, chain.c}));
  EXPECT_TRUE(critical_path(Timeline{}).empty());
}

TEST(Timeline, BlockersThatGoInACircleAreOurFault) {
  Chain chain;
  chain.timeline.spans[0].blocker = chain.c;
  EXPECT_THROW(critical_path(chain.timeline), std::logic_error);
}

TEST(Timeline, TheFingerprintSeesEverySpan) {
  const Chain chain;
  const std::uint64_t before = fingerprint(chain.timeline);
  EXPECT_EQ(before, fingerprint(Chain{}.timeline));
  for (std::size_t i = 0; i < 4; ++i) {
    Timeline other = chain.timeline;
    other.spans[i].end += Time::picoseconds(1);
    EXPECT_NE(fingerprint(other), before);
    other = chain.timeline;
    other.spans[i].blocker = chain.d;
    EXPECT_NE(fingerprint(other), before);
  }
  Timeline longer = chain.timeline;
  longer.makespan += Time::picoseconds(1);
  EXPECT_NE(fingerprint(longer), before);
}

TEST(Timeline, TheFingerprintIsTheSameOnEveryMachine) {
  // FNV-1a of eight zero bytes (no spans), then eight more (no makespan).
  std::uint64_t expected = 0xcbf29ce484222325ULL;
  for (int i = 0; i < 16; ++i) expected *= 0x100000001b3ULL;
  EXPECT_EQ(fingerprint(Timeline{}), expected);
}

}  // namespace
}  // namespace rehearse::timeline_test
