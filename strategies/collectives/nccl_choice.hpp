// Which algorithm and protocol NCCL takes: its own model of time, with the constants of its
// version. It only chooses; how long the chosen one takes is simulated. NCCL is wrong at times, and
// then `auto` must be as slow as NCCL is.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

/// What NCCL's search finds on a machine, in its terms: GB/s and microseconds.
struct NcclGraph {
  std::size_t ranks = 1, nodes = 1;
  int sm = 80;             // compute capability
  bool nvlink = false;     // between the GPUs of a node
  double intra = 0;        // bus bandwidth within a node, all channels
  double nic = 0;          // of the NICs of a node that the group can use
  double nic_latency = 0;  // what the network adds to a hop
  bool in_switch = false;  // the node's switch reduces
};

/// Of a group on a topology.
NcclGraph nccl_graph(const CollectiveShape& shape, const Topology& topology);

/// "2.23" is 223. Its model's time in microseconds; nothing where it never takes that.
std::optional<double> nccl_time(int version, const NcclGraph& graph, CollectiveKind kind,
                                std::string_view algorithm, std::string_view protocol, Bytes size);

/// What `auto` may take with this library; any algorithm where there is none.
bool library_has(const Library& library, std::string_view algorithm);

}  // namespace rehearse
