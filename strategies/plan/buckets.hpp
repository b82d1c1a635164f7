// Communication fusion: gradients travel in buckets, so that few large collectives replace many
// small ones and the first can begin long before the backward pass ends.
//
//   backward   │ layer 5 │ layer 4 │ layer 3 │ layer 2 │ layer 1 │ layer 0 │
//   buckets    │1│──── 2 ────│──── 3 ────│──── 4 ────│── 5 ──│       the first one is small
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace rehearse {

struct Bucket {
  Bytes bytes;
  std::uint32_t layer = 0;  // in forward order: the one whose backward completes it
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// What the scenario says; or else as PyTorch's DDP where gradients leave beside the backward pass,
/// and as Megatron's where they wait for its end: everything at once (zero: no limit).
struct BucketSizes {
  Bytes first, others;
  friend bool operator==(const BucketSizes&, const BucketSizes&) = default;
};
BucketSizes bucket_sizes(const Parallelism& how);

/// Buckets in the order in which the backward pass fills them: the first of `first` bytes, the
/// others of their size, the last of what is left. `bytes` of each layer, in forward order.
std::vector<Bucket> fill_buckets(std::span<const Bytes> bytes, const BucketSizes& sizes);

}  // namespace rehearse
