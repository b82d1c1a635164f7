// The formulas of lessons: sums and products of numbers, values and measured quantities.
//
//   2 * (ranks - 1) * (alpha + size / ranks / beta)
//   step_time[nodes=1, mbs=8] / step_time
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/teach/teach_amount.hpp"

namespace rehearse {

/// What a name means: `with` is what stands in its brackets, by commas.
using Meaning = std::function<Amount(std::string_view name, const std::vector<std::string>& with)>;

/// Numbers may have a unit ("64MiB", "2us"); functions are min, max, ceil, log2 and sqrt. Throws
/// InputError with one line and no place.
Amount evaluate(std::string_view formula, const Meaning& meaning);

}  // namespace rehearse
