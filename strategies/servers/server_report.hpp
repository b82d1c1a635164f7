// What a run with parameter servers tells: how many updates a second, how stale they are, how busy
// the servers, how long a step.
//
// Workers end at different times, and those that are left have the servers for themselves. So rates
// and distributions are those of the time in which all of them train: until the first one is done.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/timeline.hpp"
#include "strategies/servers/parameter_server.hpp"

namespace rehearse {

/// Nearest ranks: the p-th percentile is the smallest value that p % do not exceed.
struct Spread {
  double mean = 0, least = 0, p50 = 0, p90 = 0, most = 0;
  std::size_t count = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};
Spread spread_of(std::vector<double> values);

struct ServerReport {
  Time window;                    // in which all workers train
  Time makespan;                  // until the last one is done
  std::uint64_t gradients = 0;    // of workers, whole ones, that were taken in the window
  std::uint64_t versions = 0;     // of the parameters: fewer where several are applied as one
  double updates_per_second = 0;  // gradients taken in
  double samples_per_second = 0, tokens_per_second = 0;
  Spread step;                       // seconds, of the steps that ended in the window
  Spread staleness;                  // versions between a worker's pull and its push
  std::vector<std::uint64_t> stale;  // how many pushes were so stale, by staleness
  Spread wait;                       // seconds that requests stood in a server's queue
  double queue_length = 0;           // of a server, in the mean over time, without who is served
  double busy = 0, busiest = 0;      // share of the window: all servers in the mean, and the worst
  double computing = 0;              // share of the window in which a worker's kernels run
  friend bool operator==(const ServerReport&, const ServerReport&) = default;
};

ServerReport report_servers(const ServerPlan& plan, const ServerProgram& lowered,
                            const Timeline& timeline);

}  // namespace rehearse
