// A block of CUDA threads as fibers: they run one at a time, in an order drawn from the seed, until
// each has left the kernel or all of them wait for something that cannot come.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <source_location>
#include <string>

namespace emulated_cuda {

struct ThreadPlace {
  uint3 thread{}, block{};
  dim3 block_size, grid_size;
  unsigned linear = 0;  // in its block

  unsigned lane() const { return linear % 32; }
};

/// Of the CUDA thread that runs now.
const ThreadPlace& current_thread();
/// Of the block that runs now: what its launch asked for.
void* dynamic_shared();
long long next_clock();

/// Waits for all threads of the block, and returns how many of them voted.
int block_barrier(int vote, std::source_location place);
using WarpValues = std::array<std::uint64_t, 32>;
/// Waits for all lanes of the mask, and returns what they handed in; good until the next exchange.
const WarpValues& warp_exchange(unsigned mask, std::uint64_t value);

struct BlockShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
};
/// Runs the body once for each thread of one block. Returns what went wrong, or nothing.
std::string run_block(const std::function<void()>& body, const BlockShape& shape, uint3 block,
                      std::mt19937_64& order);

/// From a signal handler on a fiber: ends its block with this message. False outside of a kernel.
bool abandon_block(const std::string& message);

}  // namespace emulated_cuda
