// The bits of a double, for hashes and keys: std::bit_cast, which the lab's libc++ has not.
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

}  // namespace rehearse
