// Packets of deep gradient compression on a GPU, as Programs call their parts
// (kernels/host/compression_calls.cpp): sample, sort by a byte, select, add.
//
//   sort   a block counts the digits of its 1024 keys; one block turns counts into places, digit
//          after digit and chunk after chunk; then thread d of a chunk's block writes the keys with
//          digit d in their order: stable, and no atomics that could disturb it
#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/step_state.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

constexpr std::size_t sort_chunk = 1024;
constexpr unsigned digits = 256;

std::size_t chunks_of(std::size_t keys) { return (keys + sort_chunk - 1) / sort_chunk; }

__global__ void __launch_bounds__(block_size)
    sample_kernel(const float* values, std::size_t numbers, const StepState* state,
                  RandomWords words, std::uint32_t* keys, std::size_t count) {
  words.stream += static_cast<std::uint64_t>(state->taken);
  for (std::size_t i = global_thread(); i < count; i += grid_threads()) {
    const std::size_t begin = numbers * i / count, end = numbers * (i + 1) / count;
    // Not words.word(i): an array with a computed index would live in local memory.
    const PhiloxCounter four = words.block(i / 4);
    const unsigned lane = i % 4;
    const std::uint32_t word = lane == 0   ? four[0]
                               : lane == 1 ? four[1]
                               : lane == 2 ? four[2]
                                           : four[3];
    keys[i] = __float_as_uint(values[begin + word % (end - begin)]) & 0x7fffffffU;
  }
}

__global__ void __launch_bounds__(digits)
    count_keys_kernel(const std::uint32_t* keys, std::size_t count, unsigned shift,
                      std::uint32_t* places, std::size_t chunks) {
  __shared__ std::uint32_t mine[digits];
  mine[threadIdx.x] = 0;
  __syncthreads();
  const std::size_t begin = blockIdx.x * sort_chunk, end = min(begin + sort_chunk, count);
  for (std::size_t i = begin + threadIdx.x; i < end; i += digits)
    atomicAdd(&mine[keys[i] >> shift & 0xff], 1U);
  __syncthreads();
  places[threadIdx.x * chunks + blockIdx.x] = mine[threadIdx.x];
}

// Each thread has one digit's chunks.
__global__ void __launch_bounds__(digits)
    place_keys_kernel(std::uint32_t* places, std::size_t chunks) {
  __shared__ std::uint32_t of_digit[digits];
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < chunks; ++i) sum += places[threadIdx.x * chunks + i];
  of_digit[threadIdx.x] = sum;
  __syncthreads();
  std::uint32_t before = 0;
  for (unsigned d = 0; d < threadIdx.x; ++d) before += of_digit[d];
  for (std::size_t i = 0; i < chunks; ++i) {
    const std::uint32_t here = places[threadIdx.x * chunks + i];
    places[threadIdx.x * chunks + i] = before;
    before += here;
  }
}

__global__ void __launch_bounds__(digits)
    write_keys_kernel(const std::uint32_t* keys, std::size_t count, unsigned shift,
                      const std::uint32_t* places, std::size_t chunks, std::uint32_t* sorted) {
  __shared__ std::uint32_t window[sort_chunk];
  const std::size_t begin = blockIdx.x * sort_chunk, end = min(begin + sort_chunk, count);
  for (std::size_t i = begin + threadIdx.x; i < end; i += digits) window[i - begin] = keys[i];
  __syncthreads();
  std::uint32_t place = places[threadIdx.x * chunks + blockIdx.x];
  for (std::size_t i = 0; i < end - begin; ++i)
    if ((window[i] >> shift & 0xff) == threadIdx.x) sorted[place++] = window[i];
}

// Places that the threshold left empty stay zeros.
__global__ void __launch_bounds__(block_size)
    fill_packet_kernel(float* velocity, float* accumulated, const std::uint32_t* indices,
                       const std::uint32_t* found, bool masks, float* values, std::size_t sent) {
  for (std::size_t i = global_thread(); i < sent; i += grid_threads()) {
    if (i >= *found) break;
    values[i] = accumulated[indices[i]];
    accumulated[indices[i]] = 0;
    if (masks) velocity[indices[i]] = 0;
  }
}

// An empty place names number 0 and adds nothing: it must not come between number 0 and its own.
__global__ void __launch_bounds__(block_size)
    add_packet_kernel(const std::uint32_t* indices, const float* values, std::size_t sent,
                      float* sum) {
  for (std::size_t i = global_thread(); i < sent; i += grid_threads())
    if (values[i] != 0) sum[indices[i]] += values[i];
}

}  // namespace

void sample_keys(DeviceStream stream, std::span<const float> values, const StepState* state,
                 const RandomWords& words, std::span<std::uint32_t> keys) {
  ASSERT(keys.size() <= values.size());
  if (keys.empty()) return;
  launch(stream, {grid_for(keys.size())}, sample_kernel, values.data(), values.size(), state, words,
         keys.data(), keys.size());
}

std::size_t sort_scratch_words(std::size_t keys) { return digits * chunks_of(keys); }

void sort_by_byte(DeviceStream stream, std::span<const std::uint32_t> keys, std::size_t byte,
                  std::span<std::uint32_t> scratch, std::span<std::uint32_t> sorted) {
  ASSERT(keys.size() == sorted.size() && byte < 4);
  ASSERT(scratch.size() >= sort_scratch_words(keys.size()));
  if (keys.empty()) return;
  const std::size_t chunks = chunks_of(keys.size());
  const auto shift = static_cast<unsigned>(8 * byte);
  launch(stream, {grid_of_rows(chunks), dim3{digits}}, count_keys_kernel, keys.data(), keys.size(),
         shift, scratch.data(), chunks);
  launch(stream, {dim3{1}, dim3{digits}}, place_keys_kernel, scratch.data(), chunks);
  launch(stream, {grid_of_rows(chunks), dim3{digits}}, write_keys_kernel, keys.data(), keys.size(),
         shift, scratch.data(), chunks, sorted.data());
}

void fill_packet(DeviceStream stream, CompressionState state,
                 std::span<const std::uint32_t> indices, const std::uint32_t* found, bool masks,
                 std::span<float> values) {
  ASSERT(indices.size() == values.size());
  if (values.empty()) return;
  launch(stream, {grid_for(values.size())}, fill_packet_kernel, state.velocity.data(),
         state.accumulated.data(), indices.data(), found, masks, values.data(), values.size());
}

void add_packet(DeviceStream stream, std::span<const std::uint32_t> indices,
                std::span<const float> values, std::span<float> sum) {
  ASSERT(indices.size() == values.size());
  if (values.empty()) return;
  launch(stream, {grid_for(values.size())}, add_packet_kernel, indices.data(), values.data(),
         values.size(), sum.data());
}

}  // namespace rehearse
