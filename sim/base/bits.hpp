// For hashes and keys: the bits of a double (std::bit_cast, which the lab's libc++ has not), and
// bits mixed.
#pragma once

#include <cstdint>
#include <cstring>

namespace rehearse {

inline std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  static_assert(sizeof bits == sizeof value);
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// splitmix64's finaliser (Steele, Lea and Flood 2014): every input bit reaches every output bit.
constexpr std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}
/// The whole of it, which also moves zero.
constexpr std::uint64_t splitmix(std::uint64_t bits) { return mixed(bits + 0x9e3779b97f4a7c15u); }

}  // namespace rehearse
