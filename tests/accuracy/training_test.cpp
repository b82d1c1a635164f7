// Today's errors of training steps by sweeps, of the published rows and of the large collection
// where it is: shares, rounded up; correlation in groups and memory rounded down; rows scored.
#include "tests/accuracy/measurements.hpp"

namespace rehearse {
namespace {

TEST(PublishedAccuracy, Training) {
  constexpr AccuracyBound bounds[] = {
      {"", 0.24, 0.18, 0.47, -1, 0.94, 65},
      {"megatron-sc21-table1", 0.23, 0.23, 0.24, -1, 0.99, 5},
      {"megatron-sc21-zero3", 0.45, 0.45, 0.45, -1, 0.99, 1},
      {"korthikanti-table5", 0.21, 0.21, 0.23, -1, 0.99, 4},
      {"dgxc-recipes", 0.16, 0.17, 0.22, -1, 0.99, 28},
      {"nemo-24.07", 0.25, 0.25, 0.27, -1, 0.99, 2},
      {"megatron-bridge", 0.12, 0.1, 0.17, -1, 0.99, 11},
      {"torchtitan", 0.48, 0.46, 0.58, -1, 0.78, 14},
  };
  expect_within(accuracy_of(published("training.csv")), bounds);
}

TEST(CollectedAccuracy, Training) {
  const std::string file = collected("training.csv");
  if (file.empty()) GTEST_SKIP() << "no training.csv: set REHEARSE_MEASUREMENTS";
  constexpr AccuracyBound bounds[] = {
      {"", 0.35, 0.33, 0.57, 0.54, 0.92, 739},
      {"megatron-sc21-table1", 0.23, 0.23, 0.24, -1, 0.99, 5},
      {"megatron-sc21-zero3", 0.45, 0.45, 0.45, -1, 0.99, 1},
      {"korthikanti-table5", 0.21, 0.21, 0.23, -1, 0.99, 4},
      {"dgxc-recipes", 0.16, 0.17, 0.22, -1, 0.99, 28},
      {"nemo-24.07", 0.25, 0.25, 0.27, -1, 0.99, 2},
      {"megatron-bridge", 0.12, 0.1, 0.17, -1, 0.99, 11},
      {"mpt-fsdp", 0.33, 0.3, 0.48, -1, 0.97, 115},
      {"internevo", 0.3, 0.3, 0.33, 0.99, 0.99, 27},
      {"torchtitan", 0.48, 0.46, 0.58, -1, 0.78, 14},
      {"bloom-topology", 0.36, 0.34, 0.42, 0.12, 0.99, 30},
      {"bigscience-1b3", 0.27, 0.25, 0.43, 0.73, 0.99, 15},
      {"aleph-alpha", 0.4, 0.39, 0.52, 0.51, 0.84, 192},
      {"simumax-b200", 0.4, 0.42, 0.52, 0.99, 0.99, 16},
      {"vtrain-single", 0.38, 0.36, 0.63, 0.49, 0.99, 253},
      {"vtrain-multi", 0.26, 0.25, 0.37, 0.96, 0.99, 26},
  };
  expect_within(accuracy_of(file), bounds);
}

}  // namespace
}  // namespace rehearse
