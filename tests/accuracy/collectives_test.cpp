// Today's errors of collectives by bands of sizes, of the published rows and of the large
// collection where it is: shares, rounded up; correlation in groups and memory rounded down; rows
// scored.
#include "tests/accuracy/measurements.hpp"
#include "tests/support/places.hpp"

namespace rehearse::collectives_test {
namespace {

TEST(PublishedAccuracy, Collectives) {
  constexpr AccuracyBound bounds[] = {
      {"", 0.161, 0.09, 0.45, -1, 0, 53},
      {"size < 1 MiB", 0.2, 0.15, 0.42, -1, 0, 22},
      {"size 1 to 64 MiB", 0.11, 0.05, 0.29, -1, 0, 6},
      {"size >= 64 MiB", 0.15, 0.02, 0.5, -1, 0, 25},
  };
  expect_within(accuracy_of(published("collectives.csv")), bounds);
}

TEST(CollectedAccuracy, Collectives) {
  const std::string file = collected("collectives.csv");
  if (file.empty()) GTEST_SKIP() << "no collectives.csv: set REHEARSE_MEASUREMENTS";
  constexpr AccuracyBound bounds[] = {
      {"", 0.123, 0.073, 0.31, 0.8, 0, 783},
      {"size < 1 MiB", 0.14, 0.1, 0.32, 0.78, 0, 394},
      {"size 1 to 64 MiB", 0.13, 0.07, 0.34, 0.85, 0, 177},
      {"size >= 64 MiB", 0.1, 0.04, 0.2, 0.85, 0, 212},
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
      "/topology/formats/libraries.toml' --leave-out --at-most 12,11,6 --cost-at-most 10";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace rehearse::collectives_test
