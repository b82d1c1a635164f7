// `rehearse bench --backend host`: collectives executed and timed on this machine.
#pragma once

#include <string>
#include <vector>

#include "strategies/collectives/algorithms.hpp"
#include "tools/bench_table.hpp"
#include "tools/host_ranks.hpp"

namespace rehearse {

/// One algorithm at one size.
struct MeasuredCollective {
  std::string algorithm;
  Bytes size;
  Time first, second;  // medians of two series of runs, each of many collectives in a row
  double spread = 0;   // (slowest - fastest) / median of both
  std::int64_t wrong = 0;
};

struct CollectiveJob {
  const HostRanks& ranks;
  Routing& routing;
  CollectiveShape shape;  // its group is what runs
  Precision numbers = Precision::fp32;
  std::size_t iterations = 20, series = 3;
};

/// The names that can do the shape on the machine: all of those wished for, or all there are.
/// Throws InputError when a wish cannot be met.
std::vector<std::string> runnable_algorithms(const CollectiveShape& shape, const Topology& topology,
                                             const std::vector<std::string>& wished);

/// Runs it, checks every number, then times it.
MeasuredCollective measure(const CollectiveJob& job, const std::string& algorithm, Bytes size);

struct HostBench {
  std::string collective;
  CollectiveKind kind{};
  DataType type;
  std::vector<Bytes> sizes;
  std::string cluster;      // empty: as many ranks as asked for, all alike
  std::string calibration;  // its pieces are those that are sent; empty: none
  std::size_t ranks = 0;
  std::vector<std::string> algorithms;
  std::uint32_t root = 0;
  std::size_t channels = 0, iterations = 20;
  std::string json, csv;
  bool quiet = false;
};
void bench_on_host(const HostBench& bench);

}  // namespace rehearse
