// Filling, from the last layer to the first.
#include "strategies/plan/buckets.hpp"

#include <algorithm>
#include <limits>

namespace rehearse {

BucketSizes bucket_sizes(const Parallelism& how) {
  BucketSizes sizes{how.first_bucket_size, how.bucket_size};
  if (!how.overlap_grad_reduce && how.zero_stage < 2) return sizes;
  if (sizes.first == Bytes{0}) sizes.first = 1_MiB;
  if (sizes.others == Bytes{0}) sizes.others = 25_MiB;
  return sizes;
}

std::vector<Bucket> fill_buckets(std::span<const Bytes> bytes, const BucketSizes& sizes) {
  const Bytes size =
      sizes.others > Bytes{0} ? sizes.others : Bytes{std::numeric_limits<std::int64_t>::max()};
  std::vector<Bucket> buckets;
  Bytes filled, capacity = sizes.first > Bytes{0} ? std::min(sizes.first, size) : size;
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
