// Filling, from the last layer to the first.
#include "strategies/buckets.hpp"

#include <algorithm>

#include "sim/assert.hpp"

namespace rehearse {

std::vector<Bucket> fill_buckets(std::span<const Bytes> bytes, Bytes first, Bytes size) {
  ASSERT(size > Bytes{0});
  std::vector<Bucket> buckets;
  Bytes filled, capacity = first > Bytes{0} ? std::min(first, size) : size;
  std::uint32_t last = 0;
  for (std::size_t l = bytes.size(); l-- > 0;) {
    Bytes left = bytes[l];
    while (left > Bytes{0}) {
      last = static_cast<std::uint32_t>(l);
      const Bytes taken = std::min(left, capacity - filled);
      filled += taken;
      left -= taken;
      if (filled < capacity) continue;
      buckets.push_back({filled, last});
      filled = Bytes{0};
      capacity = size;
    }
  }
  if (filled > Bytes{0}) buckets.push_back({filled, last});
  return buckets;
}

}  // namespace rehearse
