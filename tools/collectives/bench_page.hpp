// What `rehearse bench --report` writes: bandwidth over size, and the last size drawn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/program/timeline.hpp"
#include "tools/output/bench_table.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// The winner's program at the last size.
struct BenchRun {
  Program program;
  Timeline timeline;
};

struct BenchReport {
  std::string collective, engine;
  const Topology& topology;
  const std::vector<BenchRow>& rows;
  std::optional<BenchRun> last;  // none: too many transfers to draw
};

std::string bench_page(const BenchReport& report);

}  // namespace rehearse
