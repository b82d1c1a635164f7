// Philox4x32-10: random numbers from a counter and a key, no state (Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Any thread of any device computes the
// number of any element, and a backward pass computes it again instead of keeping it.
#pragma once

#include <array>
#include <cstdint>

namespace rehearse {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Four random words, the same for the same counter and key on every machine.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xd2511f53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key = {key[0] + 0x9e3779b9, key[1] + 0xbb67ae85};  // the golden ratio, and √3 - 1
  }
  return counter;
}

/// A sequence of random words: `seed` is the run's, `stream` the use's (a layer and a step). Word i
/// is word i % 4 of block i / 4.
struct RandomWords {
  std::uint64_t seed = 0, stream = 0;

  constexpr PhiloxCounter block(std::uint64_t number) const {
    return philox4x32(
        {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32),
         static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  }
  constexpr std::uint32_t word(std::uint64_t i) const { return block(i / 4)[i % 4]; }
  friend constexpr bool operator==(const RandomWords&, const RandomWords&) = default;
};

}  // namespace rehearse
