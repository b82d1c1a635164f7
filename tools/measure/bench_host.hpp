// `rehearse bench --backend host`: collectives executed and timed on this machine.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/collectives/algorithms.hpp"
#include "strategies/collectives/expand.hpp"
#include "tools/measure/host_ranks.hpp"
#include "tools/output/bench_table.hpp"

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

/// In place of an algorithm's name: collectives that a library runs, NCCL on GPUs, MPI between
/// processes.
constexpr std::string_view nccl_collective = "nccl", mpi_collective = "mpi";

/// The same collective again and again, expanded as the algorithm does it.
Expanded collectives_in_a_row(const CollectiveJob& job, const std::string& algorithm, Bytes size,
                              std::size_t times);
/// Times of single collectives, told as two series.
MeasuredCollective summarised(const std::string& algorithm, Bytes size, std::int64_t wrong,
                              const std::vector<Time>& times);
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
  std::string library = "own", json, csv;
  bool quiet = false;
  // On GPUs: who measures, and where.
  std::string backend = "host";
  std::function<MeasuredCollective(const CollectiveJob&, const std::string&, Bytes)> measure;
  std::function<std::string(std::size_t, const HostRanks&)> describe;
};
void bench_on_host(const HostBench& bench);

}  // namespace rehearse
