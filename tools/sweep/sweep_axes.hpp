// The axes of a sweep: a key and the values it takes, and the points of their product.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario_setting.hpp"

namespace rehearse {

struct Axis {
  std::string name;  // the key as the user wrote it
  std::vector<Setting> settings;
  std::vector<std::string> values;  // of the settings, as text

  bool changes_cluster() const;
  bool changes_model() const { return settings.front().table == "model"; }
  /// Whether its values are numbers of nodes, or of GPUs in each.
  bool scales() const;
};

/// "tp=1,2,4,8"; a range is counted out: 1..4 is 1,2,3,4, 1..64*2 doubles, 8..64+8 adds 8. Throws
/// InputError.
Axis parse_sweep_axis(std::string_view text);

/// Points are numbered like the digits of a counter: the last axis varies fastest.
std::size_t point_count(const std::vector<Axis>& axes);
std::vector<std::size_t> coordinates_of(const std::vector<Axis>& axes, std::size_t point);

}  // namespace rehearse
