// Shuffles and votes: every lane of the mask hands in 8 bytes and gets those of another, or a bit
// of each.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "tests/emulated_cuda/block.hpp"

template <class Number>
Number __shfl_xor_sync(unsigned mask, Number value, int lane_mask) {
  static_assert(sizeof(Number) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  bits = ::emulated_cuda::warp_shuffle_xor(mask, bits, static_cast<unsigned>(lane_mask));
  Number result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
  return ::emulated_cuda::warp_ballot(mask, vote != 0);
}
inline void __syncwarp(unsigned mask = 0xffffffffU) { ::emulated_cuda::warp_barrier(mask); }
