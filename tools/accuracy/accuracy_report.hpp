// What `rehearse accuracy` tells: tables for people, JSON for scripts.
#pragma once

#include <string>
#include <vector>

#include "tools/accuracy/accuracy_run.hpp"

namespace rehearse {

/// A sweep predicted by constants that were fitted without it.
struct LeftOutSweep {
  std::string file, sweep;
  std::size_t rows = 0;
  double mape = 0;
};

struct AccuracyReport {
  const std::vector<MeasuredFile>& files;
  const std::vector<AccuracyRow>& rows;
  bool by_sweep = true;   // else a line for each file
  std::size_t worst = 5;  // cases shown of each file
  std::vector<LeftOutSweep> left_out{};
};

std::string accuracy_text(const AccuracyReport& report);
std::string accuracy_json(const AccuracyReport& report);

}  // namespace rehearse
