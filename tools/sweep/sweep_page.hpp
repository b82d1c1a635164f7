// What `rehearse sweep --report` writes: all points by throughput and memory, the scaling curves,
// the best points as a table.
#pragma once

#include <string>

#include "tools/sweep/sweep_report.hpp"

namespace rehearse {

std::string sweep_page(const SweepReport& report);

}  // namespace rehearse
