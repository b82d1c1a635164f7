// A block of CUDA threads as fibers: they run one at a time, in an order drawn from the seed, until
// each has left the kernel or all of them wait for something that cannot come.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "tests/emulated_cuda/races.hpp"

namespace emulated_cuda {

/// Of the block that runs now: what its launch asked for.
void* dynamic_shared();
long long next_clock();

/// Where a kernel calls: as a default argument, the caller's line. clang 14 has these two builtins,
/// but not the one that std::source_location stands on.
struct Place {
  const char* file = __builtin_FILE();
  unsigned line = __builtin_LINE();
};
/// Waits for all threads of the block, and returns how many of them voted.
int block_barrier(int vote, Place place);
/// Waits for all lanes of the mask, and returns what the lane at this distance handed in.
std::uint64_t warp_shuffle_xor(unsigned mask, std::uint64_t value, unsigned lane_mask);
/// The lanes of the mask that voted.
unsigned warp_ballot(unsigned mask, bool vote);
/// Lanes see each other's memory behind it: no shuffle and no vote promises that.
void warp_barrier(unsigned mask);

struct BlockShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
};
/// The stacks on which CUDA threads run, kept from block to block. To the thread sanitizer each
/// stream has its own, and the first few streams have one for every thread of a block if asked for.
class Crew;
std::shared_ptr<Crew> make_crew(const Actor& stream, bool threads_apart);
bool keeps_threads_apart(const Crew& crew);
/// Before the first block of a kernel, and behind its last.
void begin_kernel(Crew& crew);
void end_kernel(Crew& crew);
/// Runs the body once for each thread of one block. Returns what went wrong, or nothing.
std::string run_block(const std::function<void()>& body, const BlockShape& shape, uint3 block,
                      std::mt19937_64& order, Crew& crew);

/// From a signal handler on a fiber: ends its block with this message. False outside of a kernel.
bool abandon_block(const std::string& message);

}  // namespace emulated_cuda
