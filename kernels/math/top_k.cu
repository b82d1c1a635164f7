// Top-k on a GPU without sorting: the threshold by radix, 8 bits of the magnitudes at a time, then
// one pass that keeps the order of memory.
//
//   scratch   [state][256 counts of digits][above and equal, one pair a chunk of 4096 numbers]
//
// Counts are whole numbers: atomics cannot disturb them, the same bits come out on every run.
#include <cmath>
#include <limits>

#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

constexpr std::size_t chunk = 4096;  // numbers a block counts and writes
constexpr unsigned digits = 256;

struct State {
  std::uint32_t prefix;     // leading bits of the threshold, as far as known
  std::uint32_t remaining;  // the threshold is the remaining-th largest of those with this prefix
  std::uint32_t is_active;  // whether the digits are looked for at all
  std::uint32_t threshold;  // what the selection uses, as bits
  std::uint32_t above, equal;
};
constexpr std::size_t state_words = 8;

struct Scratch {
  State* state;
  std::uint32_t *counts, *above, *equal;

  Scratch(std::span<std::uint32_t> words, std::size_t numbers)
      : state{reinterpret_cast<State*>(words.data())},
        counts{words.data() + state_words},
        above{counts + digits},
        equal{above + chunks_of(numbers)} {
    ASSERT(words.size() >= top_k_scratch_words(numbers));
  }
  static std::size_t chunks_of(std::size_t numbers) { return (numbers + chunk - 1) / chunk; }
};

// Bits of |x|, which compare as the magnitudes do; a NaN is infinity, as on the host.
__device__ std::uint32_t magnitude_bits(float value) {
  return min(__float_as_uint(value) & 0x7fffffffU, 0x7f800000U);
}

__global__ void __launch_bounds__(digits)
    begin_search_kernel(State* state, std::uint32_t* counts, std::uint32_t k,
                        bool only_if_crowded) {
  counts[threadIdx.x] = 0;
  if (threadIdx.x != 0) return;
  state->is_active = only_if_crowded ? state->above > k : 1;
  state->prefix = 0;
  state->remaining = k;
}

__global__ void __launch_bounds__(block_size)
    count_digits_kernel(const float* values, std::size_t numbers, const State* state,
                        std::uint32_t* counts, unsigned shift) {
  if (state->is_active == 0) return;
  __shared__ std::uint32_t mine[digits];
  mine[threadIdx.x] = 0;
  __syncthreads();
  const std::uint64_t prefix = state->prefix;
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads()) {
    const std::uint64_t bits = magnitude_bits(values[i]);
    if (bits >> (shift + 8) == prefix) atomicAdd(&mine[(bits >> shift) % digits], 1U);
  }
  __syncthreads();
  if (mine[threadIdx.x] > 0) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

__global__ void __launch_bounds__(digits) choose_digit_kernel(State* state, std::uint32_t* counts) {
  if (state->is_active == 0) return;
  __shared__ std::uint32_t of_digit[digits];
  of_digit[threadIdx.x] = counts[threadIdx.x];
  counts[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::uint32_t remaining = state->remaining, digit = digits - 1;
  for (; digit > 0 && of_digit[digit] < remaining; --digit) remaining -= of_digit[digit];
  state->prefix = state->prefix << 8 | digit;
  state->remaining = remaining;
}

__global__ void end_search_kernel(State* state, const float* given, float* threshold) {
  if (state->is_active != 0)
    state->threshold = state->prefix;
  else if (given != nullptr)
    state->threshold = magnitude_bits(*given);
  if (threshold != nullptr) *threshold = __uint_as_float(state->threshold);
}

void search(DeviceStream stream, std::span<const float> values, std::size_t k, bool only_if_crowded,
            const Scratch& scratch) {
  launch(stream, {dim3{1}, dim3{digits}}, begin_search_kernel, scratch.state, scratch.counts, k,
         only_if_crowded);
  for (int shift = 24; shift >= 0; shift -= 8) {
    launch(stream, {grid_for(values.size(), 4 * block_size)}, count_digits_kernel, values.data(),
           values.size(), scratch.state, scratch.counts, shift);
    launch(stream, {dim3{1}, dim3{digits}}, choose_digit_kernel, scratch.state, scratch.counts);
  }
}

__global__ void __launch_bounds__(block_size)
    count_chunks_kernel(const float* values, std::size_t numbers, const State* state,
                        std::uint32_t* above, std::uint32_t* equal) {
  const std::size_t begin = blockIdx.x * chunk, end = min(begin + chunk, numbers);
  const std::uint32_t threshold = state->threshold;
  std::uint32_t more = 0, same = 0;
  for (std::size_t i = begin + threadIdx.x; i < end; i += block_size) {
    const std::uint32_t bits = magnitude_bits(values[i]);
    more += bits > threshold ? 1 : 0;
    same += bits == threshold ? 1 : 0;
  }
  more = block_sum(more);
  same = block_sum(same);
  if (threadIdx.x != 0) return;
  above[blockIdx.x] = more;
  equal[blockIdx.x] = same;
}

// Counts become how many come before; one block, each thread has neighbouring chunks.
__device__ std::uint32_t scan(std::uint32_t* counts, std::size_t chunks) {
  __shared__ std::uint32_t parts[block_size];
  const std::size_t begin = chunks * threadIdx.x / block_size;
  const std::size_t end = chunks * (threadIdx.x + 1) / block_size;
  std::uint32_t sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += counts[i];
  parts[threadIdx.x] = sum;
  __syncthreads();
  std::uint32_t before = 0, total = 0;
  for (unsigned t = 0; t < block_size; ++t) {
    before += t < threadIdx.x ? parts[t] : 0;
    total += parts[t];
  }
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint32_t here = counts[i];
    counts[i] = before;
    before += here;
  }
  __syncthreads();
  return total;
}

__global__ void __launch_bounds__(block_size)
    scan_kernel(State* state, std::uint32_t* above, std::uint32_t* equal, std::size_t chunks,
                std::uint32_t limit, std::uint32_t* count) {
  const std::uint32_t more = scan(above, chunks), same = scan(equal, chunks);
  if (threadIdx.x != 0) return;
  state->above = more;
  state->equal = same;
  if (count != nullptr) *count = min(more, limit) + min(same, limit - min(more, limit));
}

// How many of the block's threads before this one have `is_set`; `total` of all.
__device__ std::uint32_t rank_in_block(bool is_set, std::uint32_t* total) {
  __shared__ std::uint32_t warps[block_size / warp_lanes];
  const unsigned lane = threadIdx.x % warp_lanes, warp = threadIdx.x / warp_lanes;
  const unsigned votes = __ballot_sync(all_lanes, is_set ? 1 : 0);
  if (lane == 0) warps[warp] = static_cast<std::uint32_t>(__popc(votes));
  __syncthreads();
  std::uint32_t before = static_cast<std::uint32_t>(__popc(votes & ((1U << lane) - 1)));
  *total = 0;
  for (unsigned w = 0; w < block_size / warp_lanes; ++w) {
    before += w < warp ? warps[w] : 0;
    *total += warps[w];
  }
  __syncthreads();
  return before;
}

__global__ void __launch_bounds__(block_size)
    write_indices_kernel(const float* values, std::size_t numbers, const State* state,
                         const std::uint32_t* above, const std::uint32_t* equal,
                         std::uint32_t limit, std::uint32_t* indices) {
  const std::size_t begin = blockIdx.x * chunk, end = min(begin + chunk, numbers);
  const std::uint32_t threshold = state->threshold, equals_left = limit - state->above;
  std::uint32_t more_before = above[blockIdx.x], same_before = equal[blockIdx.x];
  for (std::size_t first = begin; first < end; first += block_size) {
    const std::size_t i = first + threadIdx.x;
    const std::uint32_t bits = i < end ? magnitude_bits(values[i]) : 0;
    const bool is_more = i < end && bits > threshold, is_same = i < end && bits == threshold;
    std::uint32_t more_here, same_here;
    const std::uint32_t more = more_before + rank_in_block(is_more, &more_here);
    const std::uint32_t same = same_before + rank_in_block(is_same, &same_here);
    if (is_more || (is_same && same < equals_left))
      indices[more + min(same, equals_left)] = static_cast<std::uint32_t>(i);
    more_before += more_here;
    same_before += same_here;
  }
}

__global__ void __launch_bounds__(block_size)
    draw_sample_kernel(const float* values, std::size_t numbers, std::size_t sample,
                       RandomWords words, float* drawn) {
  for (std::size_t i = global_thread(); i < sample; i += grid_threads()) {
    const std::size_t begin = numbers * i / sample, end = numbers * (i + 1) / sample;
    // Not words.word(i): an array with a computed index would live in local memory.
    const PhiloxCounter four = words.block(i / 4);
    const unsigned lane = i % 4;
    const std::uint32_t word = lane == 0   ? four[0]
                               : lane == 1 ? four[1]
                               : lane == 2 ? four[2]
                                           : four[3];
    drawn[i] = values[begin + word % (end - begin)];
  }
}

void count(DeviceStream stream, std::span<const float> values, std::uint32_t limit,
           const Scratch& scratch, std::uint32_t* result) {
  const std::size_t chunks = Scratch::chunks_of(values.size());
  launch(stream, {grid_of_rows(chunks)}, count_chunks_kernel, values.data(), values.size(),
         scratch.state, scratch.above, scratch.equal);
  launch(stream, {}, scan_kernel, scratch.state, scratch.above, scratch.equal, chunks, limit,
         result);
}

}  // namespace

std::size_t top_k_scratch_words(std::size_t numbers) {
  return state_words + digits + 2 * Scratch::chunks_of(numbers);
}

void exact_threshold(DeviceStream stream, std::span<const float> values, std::size_t k,
                     std::span<std::uint32_t> scratch, float* threshold) {
  ASSERT(k >= 1 && k <= values.size());
  ASSERT(values.size() <= std::numeric_limits<std::uint32_t>::max());
  const Scratch at{scratch, values.size()};
  search(stream, values, k, false, at);
  launch(stream, {dim3{1}, dim3{1}}, end_search_kernel, at.state, nullptr, threshold);
}

void sampled_threshold(DeviceStream stream, std::span<const float> values, std::size_t k,
                       const RandomWords& words, std::span<float> sample,
                       std::span<std::uint32_t> scratch, float* threshold) {
  ASSERT(k >= 1 && k <= values.size() && !sample.empty() && sample.size() <= values.size());
  launch(stream, {grid_for(sample.size())}, draw_sample_kernel, values.data(), values.size(),
         sample.size(), words, sample.data());
  const double share = static_cast<double>(k) / static_cast<double>(values.size());
  const auto wanted =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(sample.size())));
  exact_threshold(stream, sample, std::clamp<std::size_t>(wanted, 1, sample.size()), scratch,
                  threshold);
}

void select_above(DeviceStream stream, std::span<const float> values, const float* threshold,
                  std::span<std::uint32_t> scratch, std::span<std::uint32_t> indices,
                  std::uint32_t* found) {
  ASSERT(values.size() <= std::numeric_limits<std::uint32_t>::max());
  const Scratch at{scratch, values.size()};
  const auto limit = static_cast<std::uint32_t>(std::min(indices.size(), values.size()));
  if (limit == 0) {
    CUDA_TRY(cudaMemsetAsync(found, 0, sizeof(*found), stream));
    return;
  }
  // Counted once with the given threshold; where too many are above it, again with an exact one.
  CUDA_TRY(cudaMemsetAsync(at.state, 0, sizeof(State), stream));
  launch(stream, {dim3{1}, dim3{1}}, end_search_kernel, at.state, threshold, nullptr);
  count(stream, values, limit, at, nullptr);
  search(stream, values, limit, true, at);
  launch(stream, {dim3{1}, dim3{1}}, end_search_kernel, at.state, threshold, nullptr);
  count(stream, values, limit, at, found);
  launch(stream, {grid_of_rows(Scratch::chunks_of(values.size()))}, write_indices_kernel,
         values.data(), values.size(), at.state, at.above, at.equal, limit, indices.data());
}

}  // namespace rehearse
