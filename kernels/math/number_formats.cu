// Casts on a GPU, four numbers a thread: 16 bytes on the wide side, 8 or 4 on the narrow one.
#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/cuda_number_formats.cuh"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

template <class Number>
struct alignas(4 * sizeof(Number)) Four {
  Number at[4];
};

struct ToFp16 {
  __device__ Fp16 operator()(float value) const { return narrowed<Fp16>(value); }
};
struct ToBf16 {
  __device__ Bf16 operator()(float value) const { return narrowed<Bf16>(value); }
};
struct ToE4m3 {
  Fp8Range range;
  __device__ E4m3 operator()(float value) const {
    return static_cast<E4m3>(fp8_bits(value, range, __NV_E4M3));
  }
};
struct ToE5m2 {
  Fp8Range range;
  __device__ E5m2 operator()(float value) const {
    return static_cast<E5m2>(fp8_bits(value, range, __NV_E5M2));
  }
};
struct ToFloat {
  template <class Narrow>
  __device__ float operator()(Narrow value) const {
    return widened(value);
  }
};

template <class Source, class Target, class Convert>
__global__ void __launch_bounds__(block_size)
    cast_kernel(Convert convert, const Source* source, Target* target, std::size_t fours,
                std::size_t numbers) {
  for (std::size_t i = global_thread(); i < fours; i += grid_threads()) {
    const Four<Source> from = reinterpret_cast<const Four<Source>*>(source)[i];
    reinterpret_cast<Four<Target>*>(target)[i] = {convert(from.at[0]), convert(from.at[1]),
                                                  convert(from.at[2]), convert(from.at[3])};
  }
  for (std::size_t i = 4 * fours + global_thread(); i < numbers; i += grid_threads())
    target[i] = convert(source[i]);
}

template <class Source, class Target, class Convert>
void cast_with(DeviceStream stream, Convert convert, std::span<const Source> source,
               std::span<Target> target) {
  ASSERT(source.size() == target.size());
  if (target.empty()) return;
  const bool aligned = aligned16(source.data()) && aligned16(target.data());
  launch(stream, {grid_for(target.size(), aligned ? 4 * block_size : block_size)},
         cast_kernel<Source, Target, Convert>, convert, source.data(), target.data(),
         aligned ? target.size() / 4 : 0, target.size());
}

}  // namespace

void cast(DeviceStream stream, std::span<const float> source, std::span<Fp16> target) {
  cast_with(stream, ToFp16{}, source, target);
}
void cast(DeviceStream stream, std::span<const float> source, std::span<Bf16> target) {
  cast_with(stream, ToBf16{}, source, target);
}
void cast(DeviceStream stream, std::span<const float> source, std::span<E4m3> target,
          Fp8Range range) {
  cast_with(stream, ToE4m3{range}, source, target);
}
void cast(DeviceStream stream, std::span<const float> source, std::span<E5m2> target,
          Fp8Range range) {
  cast_with(stream, ToE5m2{range}, source, target);
}
void cast(DeviceStream stream, std::span<const Fp16> source, std::span<float> target) {
  cast_with(stream, ToFloat{}, source, target);
}
void cast(DeviceStream stream, std::span<const Bf16> source, std::span<float> target) {
  cast_with(stream, ToFloat{}, source, target);
}
void cast(DeviceStream stream, std::span<const E4m3> source, std::span<float> target) {
  cast_with(stream, ToFloat{}, source, target);
}
void cast(DeviceStream stream, std::span<const E5m2> source, std::span<float> target) {
  cast_with(stream, ToFloat{}, source, target);
}

}  // namespace rehearse
