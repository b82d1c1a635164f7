// A calibration profile while it is made: what was fitted, and for its reader how well.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/scenario/calibration.hpp"

namespace rehearse {

struct ProfileRow {
  std::string what;  // "gemm 512x512x512", "ring all_reduce 1048576 B"
  Time measured, modelled;
  double error() const { return modelled.seconds().count() / measured.seconds().count() - 1; }
};

struct Profile {
  Calibration calibration;
  std::vector<std::string> notes;  // lines of words
  std::vector<ProfileRow> rows;

  /// Of the rows; what a calibration states.
  double mean_error() const;

  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    notes.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
};

/// Sets the calibration's stated error to the mean of the rows'. TOML, with notes, residuals and
/// the worst of them as comments.
std::string profile_text(Profile profile);

/// "Xeon …, 2 processors, Linux 6.1, 2026-11-16".
std::string describe_this_machine();

}  // namespace rehearse
