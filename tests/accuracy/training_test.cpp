// Today's errors of training steps by sweeps, of the published rows and of the large collection
// where it is: shares, rounded up; correlation in groups and memory rounded down; rows scored.
#include "tests/accuracy/measurements.hpp"

namespace rehearse::training_test {
namespace {

// Of the sweeps that the project carries whole, which both files have.
constexpr AccuracyBound published_sweeps[] = {
    {"megatron-sc21-table1", 0.03, 0.03, 0.05, -1, 0.99, 5},
    {"megatron-sc21-zero3", 0.2, 0.2, 0.2, -1, 0.99, 1},
    {"korthikanti-table5", 0.04, 0.04, 0.06, -1, 0.99, 4},
    {"dgxc-recipes", 0.052, 0.05, 0.1, -1, 0.99, 28},
    {"nemo-24.07", 0.12, 0.12, 0.15, -1, 0.99, 2},
    {"megatron-bridge", 0.05, 0.06, 0.07, -1, 0.99, 11},
    {"torchtitan", 0.08, 0.05, 0.16, 0.95, 0.78, 14},
};

TEST(PublishedAccuracy, Training) {
  constexpr AccuracyBound bounds[] = {
      {"", 0.06, 0.05, 0.13, 0.95, 0.95, 65},
  };
  const AccuracyOf all = accuracy_of(published("training.csv"));
  expect_within(all, bounds);
  expect_within(all, published_sweeps);
}

TEST(CollectedAccuracy, Training) {
  const std::string file = collected("training.csv");
  if (file.empty()) GTEST_SKIP() << "no training.csv: set REHEARSE_MEASUREMENTS";
  constexpr AccuracyBound bounds[] = {
      {"", 0.076, 0.06, 0.18, 0.85, 0.93, 739},
      {"mpt-fsdp", 0.06, 0.05, 0.11, -1, 0.97, 115},
      {"internevo", 0.03, 0.03, 0.06, 0.99, 0.99, 27},
      {"bloom-topology", 0.07, 0.051, 0.12, 0.64, 0.99, 30},
      {"bigscience-1b3", 0.08, 0.04, 0.24, 0.77, 0.99, 15},
      {"aleph-alpha", 0.11, 0.1, 0.24, 0.78, 0.85, 192},
      {"simumax-b200", 0.06, 0.03, 0.18, 0.99, 0.99, 16},
      {"vtrain-single", 0.075, 0.07, 0.17, 0.91, 0.99, 253},
      {"vtrain-multi", 0.09, 0.04, 0.21, 0.96, 0.99, 26},
  };
  const AccuracyOf all = accuracy_of(file);
  expect_within(all, bounds);
  expect_within(all, published_sweeps);
}

// Eight of ten measured steps are to lie between the low and the high time of their prediction.
TEST(CollectedAccuracy, EightOfTenStepsLieWithinTheirBand) {
  const std::string file = collected("training.csv");
  if (file.empty()) GTEST_SKIP() << "no training.csv: set REHEARSE_MEASUREMENTS";
  const AccuracyOf all = accuracy_of(file);
  const std::vector<AccuracySummary> sums = summaries(all.rows, all.files);
  ASSERT_FALSE(sums.empty());
  EXPECT_GE(sums.front().inside.value_or(0), 0.75);
  EXPECT_LE(sums.front().inside.value_or(0), 0.87);
}

}  // namespace
}  // namespace rehearse::training_test
