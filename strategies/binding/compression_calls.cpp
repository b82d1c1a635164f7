// Buckets that travel compressed (gradient_compression.hpp): as fp16, as codes of 8 bits, or as the
// few largest of what has been accumulated. Velocity and accumulated gradients
// are the two moments of each parameter.
#include <algorithm>

#include "sim/base/assert.hpp"
#include "strategies/binding/update_calls.hpp"
#include "strategies/methods/gradient_compression.hpp"

namespace rehearse {

// What is sent, of all ranks for sparse gradients.
Slice UpdateSite::packets(const Run& bucket) {
  const Compression& how = plan_.scenario.compression;
  const auto ranks = static_cast<std::int64_t>(plan_.size(Family::replicas));
  const std::int64_t bytes = how.method == CompressionKind::dgc
                                 ? ranks * 8 * sent_of(bucket.size, how.sparsity)
                             : how.method == CompressionKind::int8 ? bucket.size
                                                                   : 2 * bucket.size;
  return model_.buffers.of_rank(
      "packets of " + std::to_string(bucket.group) + " " + std::to_string(bucket.begin),
      Bytes{bytes});
}

Slice UpdateSite::largest(const Run& bucket) {
  return model_.buffers.of_rank(
      "largest of " + std::to_string(bucket.group) + " " + std::to_string(bucket.begin), Bytes{4});
}

void UpdateSite::bind_compressed(std::string_view piece, const Run& bucket, std::size_t number) {
  const Slice gradient = slice(StateKind::gradients, bucket);
  const auto ranks = static_cast<std::int64_t>(plan_.size(Family::replicas));
  const bool to_codes = plan_.scenario.compression.method == CompressionKind::int8;
  if (piece == "compress.largest")
    calls.add(Kernel::int8_largest, {gradient, largest(bucket)});
  else if (to_codes && piece == "compress.cast")
    calls.add(Kernel::int8_quantize, {gradient, largest(bucket), packets(bucket)}, {ranks});
  else if (to_codes)
    calls.add(Kernel::int8_dequantize, {packets(bucket), largest(bucket), gradient}, {ranks});
  else if (piece == "compress.cast")
    calls.cast(gradient, packets(bucket), Precision::fp16);
  else if (piece == "compress.cast_back")
    calls.cast(packets(bucket), gradient, Precision::fp16);
  else
    bind_sparse(piece, bucket, number);
}

void UpdateSite::bind_sparse(std::string_view piece, const Run& bucket, std::size_t number) {
  using enum StateKind;
  const Compression& how = plan_.scenario.compression;
  const bool has_momentum = corrects_momentum(plan_.scenario);
  const std::size_t ranks = plan_.size(Family::replicas);
  const auto count = static_cast<std::int64_t>(ranks);
  const Slice gradient = slice(gradients, bucket), rest = slice(second_moment, bucket);
  const Slice velocity = has_momentum ? slice(first_moment, bucket) : rest;
  const auto sampled = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(how.sampled_share * static_cast<double>(bucket.size)));
  const auto keys = [&](std::size_t which) {
    return model_.buffers.of_rank("keys " + std::to_string(which % 2) + " of " +
                                      std::to_string(bucket.group) + " " +
                                      std::to_string(bucket.begin),
                                  Bytes{4 * sampled});
  };
  if (piece == "dgc.norm") {
    calls.add(Kernel::dgc_clip, {gradient}, {count},
              {plan_.scenario.training.clip_grad.value_or(1)});
  } else if (piece == "dgc.accumulate" && has_momentum) {
    calls.add(Kernel::dgc_accumulate, {gradient, velocity, rest}, {}, {numbers_.momentum});
  } else if (piece == "dgc.accumulate") {
    calls.add(Kernel::add_into, {gradient, rest});
  } else if (piece == "dgc.sample") {
    calls.add(Kernel::dgc_sample, {rest, state(), keys(0)},
              {static_cast<std::int64_t>(numbers_.seed), (std::int64_t{1} << 42) + bucket.begin});
  } else if (piece == "dgc.sort") {
    calls.add(Kernel::dgc_sort, {keys(number), keys(number + 1)},
              {static_cast<std::int64_t>(number)});
  } else if (piece == "dgc.select") {
    const std::size_t place = plan_.placement.coordinates(rank_).data;
    calls.add(Kernel::dgc_select, {velocity, rest, keys(0), Cut{packets(bucket), ranks}[place]},
              {has_momentum && how.factor_masking ? 1 : 0});
  } else if (piece == "dgc.clear") {
    calls.add(Kernel::zero, {gradient});
  } else {
    ASSERT(piece == "dgc.add");
    calls.add(Kernel::dgc_add, {packets(bucket), gradient}, {count});
  }
}

}  // namespace rehearse
