// Sums and multiples on a GPU, four numbers a thread at a time where all pointers are aligned.
#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/cuda_number_formats.cuh"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Sum3 {
  __device__ float operator()(float a, float b, float c) const { return (a + b) + c; }
};
struct Multiple {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};
struct AddMultiple {
  float factor;
  __device__ float operator()(float y, float x) const { return y + factor * x; }
};

template <int count>
struct Inputs {
  const float* at[count];
};

template <class Function>
__device__ float apply(Function function, const Inputs<1>& inputs, std::size_t i) {
  return function(inputs.at[0][i]);
}
template <class Function>
__device__ float apply(Function function, const Inputs<2>& inputs, std::size_t i) {
  return function(inputs.at[0][i], inputs.at[1][i]);
}
template <class Function>
__device__ float apply(Function function, const Inputs<3>& inputs, std::size_t i) {
  return function(inputs.at[0][i], inputs.at[1][i], inputs.at[2][i]);
}

template <class Function, class... Packs>
__device__ float4 each_of_four(Function function, Packs... packs) {
  return make_float4(function(packs.x...), function(packs.y...), function(packs.z...),
                     function(packs.w...));
}
template <class Function>
__device__ float4 apply_to_four(Function function, const Inputs<1>& inputs, std::size_t i) {
  return each_of_four(function, four_at(inputs.at[0], i));
}
template <class Function>
__device__ float4 apply_to_four(Function function, const Inputs<2>& inputs, std::size_t i) {
  return each_of_four(function, four_at(inputs.at[0], i), four_at(inputs.at[1], i));
}
template <class Function>
__device__ float4 apply_to_four(Function function, const Inputs<3>& inputs, std::size_t i) {
  return each_of_four(function, four_at(inputs.at[0], i), four_at(inputs.at[1], i),
                      four_at(inputs.at[2], i));
}

// y may be any of the inputs: each number is read before it is written, by the same thread. The
// first `fours` packs of four are loaded as such, the rest one by one.
template <class Function, int count>
__global__ void __launch_bounds__(block_size)
    map_kernel(Function function, Inputs<count> inputs, float* y, std::size_t fours,
               std::size_t numbers) {
  for (std::size_t i = global_thread(); i < fours; i += grid_threads())
    store_four(y, i, apply_to_four(function, inputs, i));
  for (std::size_t i = 4 * fours + global_thread(); i < numbers; i += grid_threads())
    y[i] = apply(function, inputs, i);
}

template <class Function, int count>
void map(DeviceStream stream, Function function, const Inputs<count>& inputs, std::span<float> y) {
  if (y.empty()) return;
  bool aligned = aligned16(y.data());
  for (const float* input : inputs.at) aligned = aligned && aligned16(input);
  const std::size_t fours = aligned ? y.size() / 4 : 0;
  launch(stream, {grid_for(y.size(), aligned ? 4 * block_size : block_size)},
         map_kernel<Function, count>, function, inputs, y.data(), fours, y.size());
}

template <class Function, class Narrow>
__global__ void __launch_bounds__(block_size)
    combine_narrow_kernel(Function function, const Narrow* x, Narrow* total, std::size_t numbers) {
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads())
    total[i] = narrowed<Narrow>(function(widened(total[i]), widened(x[i])));
}

template <class Function, class Narrow>
void combine_narrow(DeviceStream stream, Function function, std::span<const Narrow> x,
                    std::span<Narrow> total) {
  ASSERT(x.size() == total.size());
  if (!total.empty())
    launch(stream, {grid_for(total.size(), 2 * block_size)},
           combine_narrow_kernel<Function, Narrow>, function, x.data(), total.data(), total.size());
}

}  // namespace

void add(DeviceStream stream, std::span<const float> a, std::span<const float> b,
         std::span<float> y) {
  ASSERT(a.size() == y.size() && b.size() == y.size());
  map(stream, Sum{}, Inputs<2>{{a.data(), b.data()}}, y);
}

void add3(DeviceStream stream, std::span<const float> a, std::span<const float> b,
          std::span<const float> c, std::span<float> y) {
  ASSERT(a.size() == y.size() && b.size() == y.size() && c.size() == y.size());
  map(stream, Sum3{}, Inputs<3>{{a.data(), b.data(), c.data()}}, y);
}

void add_into(DeviceStream stream, std::span<const float> x, std::span<float> sum) {
  ASSERT(x.size() == sum.size());
  map(stream, Sum{}, Inputs<2>{{sum.data(), x.data()}}, sum);
}
void add_into(DeviceStream stream, std::span<const Fp16> x, std::span<Fp16> sum) {
  combine_narrow(stream, Sum{}, x, sum);
}
void add_into(DeviceStream stream, std::span<const Bf16> x, std::span<Bf16> sum) {
  combine_narrow(stream, Sum{}, x, sum);
}

void larger_into(DeviceStream stream, std::span<const float> x, std::span<float> largest) {
  ASSERT(x.size() == largest.size());
  map(stream, Larger{}, Inputs<2>{{largest.data(), x.data()}}, largest);
}
void larger_into(DeviceStream stream, std::span<const Fp16> x, std::span<Fp16> largest) {
  combine_narrow(stream, Larger{}, x, largest);
}
void larger_into(DeviceStream stream, std::span<const Bf16> x, std::span<Bf16> largest) {
  combine_narrow(stream, Larger{}, x, largest);
}

void scale(DeviceStream stream, std::span<const float> x, float factor, std::span<float> y) {
  ASSERT(x.size() == y.size());
  map(stream, Multiple{factor}, Inputs<1>{{x.data()}}, y);
}

void add_scaled(DeviceStream stream, std::span<const float> x, float factor, std::span<float> y) {
  ASSERT(x.size() == y.size());
  map(stream, AddMultiple{factor}, Inputs<2>{{y.data(), x.data()}}, y);
}

}  // namespace rehearse
