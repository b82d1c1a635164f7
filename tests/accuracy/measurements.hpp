// Where published measurements lie, and today's errors as bounds: they can only get better.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <thread>

#include "tests/support/places.hpp"
#include "tools/accuracy/accuracy_summary.hpp"

namespace rehearse {

/// What an error may be at most, as shares; a correlation at least.
struct AccuracyBound {
  std::string_view sweep;  // empty: the whole file
  double mape = 0, median_ape = 0, p90_ape = 0;
  double within_groups = -1, oom_accuracy = 0;
  std::size_t least_rows = 1;  // scored: a row that is no longer predicted is no improvement
};

struct AccuracyOf {
  std::vector<MeasuredFile> files;
  std::vector<AccuracyRow> rows;
};

inline AccuracyOf accuracy_of(const std::string& file) {
  AccuracyOf all{{load_measured(file)}, {}};
  all.rows = run_accuracy(
      {.files = all.files, .threads = std::thread::hardware_concurrency(), .progress = {}});
  return all;
}

inline void expect_within(const AccuracyOf& all, std::span<const AccuracyBound> bounds) {
  const std::vector<AccuracySummary> sums = summaries(all.rows, all.files);
  for (const AccuracyBound& bound : bounds) {
    SCOPED_TRACE(bound.sweep);
    const auto sum = std::find_if(sums.begin(), sums.end(), [&](const AccuracySummary& one) {
      return one.sweep == bound.sweep;
    });
    ASSERT_NE(sum, sums.end());
    EXPECT_GE(sum->rows, bound.least_rows);
    EXPECT_LE(sum->mape, bound.mape);
    EXPECT_LE(sum->median_ape, bound.median_ape);
    EXPECT_LE(sum->p90_ape, bound.p90_ape);
    EXPECT_GE(sum->spearman_within_groups.value_or(-1), bound.within_groups);
    EXPECT_GE(sum->memory.rows() ? sum->memory.accuracy() : 0, bound.oom_accuracy);
  }
}

inline std::string published(const std::string& name) {
  return std::string(REHEARSE_SOURCE_DIR "/scenarios/published/") + name;
}

/// A file of the large collection, which stays outside of the project; empty: it is not here.
inline std::string collected(const std::string& name) {
  const char* given = std::getenv("REHEARSE_MEASUREMENTS");
  const std::filesystem::path folder =
      given ? given : REHEARSE_SOURCE_DIR "/../shared/measurements";
  std::error_code status;
  return std::filesystem::exists(folder / name, status) ? (folder / name).string() : "";
}

}  // namespace rehearse
