// Shuffles and votes: every lane of the mask hands in 8 bytes and sees those of all.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "tests/emulated_cuda/block.hpp"

namespace emulated_cuda {

template <class Number>
Number shuffle_xor(unsigned mask, Number value, unsigned lane_mask) {
  static_assert(sizeof(Number) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  const WarpValues& all = warp_exchange(mask, bits);
  Number result;
  std::memcpy(&result, &all[(current_thread().lane() ^ lane_mask) % 32], sizeof(result));
  return result;
}

}  // namespace emulated_cuda

template <class Number>
Number __shfl_xor_sync(unsigned mask, Number value, int lane_mask) {
  return ::emulated_cuda::shuffle_xor(mask, value, static_cast<unsigned>(lane_mask));
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
  const ::emulated_cuda::WarpValues& all = ::emulated_cuda::warp_exchange(mask, vote != 0 ? 1 : 0);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0 && all[lane] != 0) votes |= 1U << lane;
  return votes;
}
inline void __syncwarp(unsigned mask = 0xffffffffU) { ::emulated_cuda::warp_exchange(mask, 0); }
