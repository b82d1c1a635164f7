// Today's errors of collectives by bands of sizes, of the published rows and of the large
// collection where it is: shares, rounded up; correlation in groups and memory rounded down; rows
// scored.
#include "tests/accuracy/measurements.hpp"

namespace rehearse {
namespace {

TEST(PublishedAccuracy, Collectives) {
  constexpr AccuracyBound bounds[] = {
      {"", 0.7, 0.63, 0.8, -1, 0, 53},
      {"size < 1 MiB", 1.13, 0.79, 2.99, -1, 0, 22},
      {"size 1 to 64 MiB", 0.65, 0.67, 0.71, -1, 0, 6},
      {"size >= 64 MiB", 0.33, 0.38, 0.52, -1, 0, 25},
  };
  expect_within(accuracy_of(published("collectives.csv")), bounds);
}

TEST(CollectedAccuracy, Collectives) {
  const std::string file = collected("collectives.csv");
  if (file.empty()) GTEST_SKIP() << "no collectives.csv: set REHEARSE_MEASUREMENTS";
  constexpr AccuracyBound bounds[] = {
      {"", 0.66, 0.7, 0.94, 0.73, 0, 783},
      {"size < 1 MiB", 0.91, 0.83, 0.97, 0.69, 0, 394},
      {"size 1 to 64 MiB", 0.55, 0.57, 0.75, 0.82, 0, 177},
      {"size >= 64 MiB", 0.29, 0.24, 0.61, 0.86, 0, 212},
  };
  expect_within(accuracy_of(file), bounds);
}

// The constants without one family of hardware, and that family predicted with them: less than 10
// points more than with it.
TEST(CollectedAccuracy, CollectivesOfHardwareThatWasLeftOut) {
  const std::string file = collected("collectives.csv");
  if (file.empty()) GTEST_SKIP() << "no collectives.csv: set REHEARSE_MEASUREMENTS";
  if (std::system("python3 --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const std::string command =
      "python3 '" REHEARSE_SOURCE_DIR "/tools/fit/collectives.py' '" REHEARSE_BINARY "' '" + file +
      "' --libraries '" REHEARSE_SOURCE_DIR
      "/topology/libraries.toml' --leave-out --at-most 15,15,12";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace rehearse
