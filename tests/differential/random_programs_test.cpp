// Our engine against SimGrid on random Programs and random machines.
#include <gtest/gtest.h>

#include "sim/program/program_text.hpp"
#include "tests/differential/engines.hpp"
#include "tests/support/random_program.hpp"

namespace rehearse::random_programs_test {
namespace {

// Fifty seeds a test, so that a failure names a small range and CTest spreads them over the cores.
class RandomPrograms : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomPrograms, BothEnginesAgree) {
  constexpr std::uint64_t seeds = 50;
  for (std::uint64_t seed = seeds * GetParam(); seed < seeds * (GetParam() + 1); ++seed) {
    Draw draw{seed};
    const Topology topology = random_topology(draw);
    const Program program = random_program(draw, topology);
    Routing routing{topology};
    const Difference difference = compare_engines(program, routing);
    // Far below the promise: programs this short cannot magnify a rounding.
    EXPECT_LE(difference.relative, 1e-6)
        << difference.where << "\nseed " << seed << " on a " << topology.name << " of "
        << topology.rank_count() << " ranks:\n"
        << to_text(program);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range<std::uint64_t>(0, 8));

}  // namespace
}  // namespace rehearse::random_programs_test
