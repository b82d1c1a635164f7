// One collective or message of the emulated NCCL: who has come to it with which buffers, and what
// all of them get.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/emulated_cuda/graphs.hpp"
#include "tests/emulated_cuda/nccl_numbers.hpp"

namespace emulated_cuda {

struct Call {
  enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, reduce, p2p };
  Kind kind{};
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  ncclDataType_t type{};
  ncclRedOp_t operation = ncclSum;
  int root = 0;  // of p2p: the peer

  std::size_t bytes() const { return count * bytes_of(type); }
  bool is_like(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type &&
           operation == other.operation && root == other.root;
  }
};

const char* name_of(Call::Kind kind);

struct Round {
  std::map<int, Call> calls;                      // by rank; of p2p: 0 sends, 1 receives
  std::map<int, std::vector<std::byte>> brought;  // from other processes, as inputs of calls
  bool is_done = false;
};

/// Once, or again in every run of the graph that it is part of.
struct Meeting {
  std::string name;                       // among those of its communicator
  std::map<std::uint64_t, Round> rounds;  // by number of the graph's run
  Round& now() { return rounds[graph_run_number()]; }
};

/// What a rank's stream touches: its own buffers, nobody else's.
struct Extent {
  const void* address;
  std::size_t bytes;
};
Extent input_of(const Call& call, int ranks);
Extent output_of(const Call& call, int ranks, int rank);

/// Moves the numbers of all, or complains that they disagree. Only memory of these devices is here.
void run_meeting(std::span<const int> devices, const Round& meeting);
/// In the name of a rank's stream: it has seen what the others brought, and has its result.
void see_arrivals(const Round& meeting, int key, const Call& call, int ranks);

}  // namespace emulated_cuda
