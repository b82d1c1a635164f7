// Whether any number is infinite or NaN, on a GPU: 16 bytes a load, one flag for many tensors.
#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

// Bits that are all set in infinities and NaNs, in each part of a word.
struct OneFloat {
  using Bits = std::uint32_t;
  static __device__ bool is_bad(std::uint32_t word) { return (word & 0x7f800000U) == 0x7f800000U; }
};
template <std::uint32_t exponent>
struct TwoHalves {
  using Bits = std::uint16_t;
  static __device__ bool is_bad(std::uint32_t word) {
    return (word & exponent) == exponent || (word >> 16 & exponent) == exponent;
  }
};

template <class Format>
__global__ void __launch_bounds__(block_size)
    not_finite_kernel(const typename Format::Bits* x, std::size_t packs, std::size_t numbers,
                      std::uint32_t* not_finite) {
  constexpr std::size_t per_pack = sizeof(uint4) / sizeof(typename Format::Bits);
  bool found = false;
  for (std::size_t i = global_thread(); i < packs; i += grid_threads()) {
    const uint4 pack = reinterpret_cast<const uint4*>(x)[i];
    found = found || Format::is_bad(pack.x) || Format::is_bad(pack.y) || Format::is_bad(pack.z) ||
            Format::is_bad(pack.w);
  }
  for (std::size_t i = per_pack * packs + global_thread(); i < numbers; i += grid_threads())
    found = found || Format::is_bad(x[i]);
  constexpr std::uint32_t one = 0x3f800000;  // of fp32: ranks tell each other the larger
  if (__syncthreads_or(found ? 1 : 0) && threadIdx.x == 0) atomicOr(not_finite, one);
}

template <class Format, class Number>
void look(DeviceStream stream, std::span<const Number> x, std::uint32_t* not_finite) {
  static_assert(sizeof(typename Format::Bits) == sizeof(Number));
  if (x.empty()) return;
  constexpr std::size_t per_pack = sizeof(uint4) / sizeof(Number);
  const std::size_t packs = aligned16(x.data()) ? x.size() / per_pack : 0;
  launch(stream, {grid_for(x.size(), (packs > 0 ? per_pack : 1) * block_size)},
         not_finite_kernel<Format>, reinterpret_cast<const typename Format::Bits*>(x.data()), packs,
         x.size(), not_finite);
}

}  // namespace

void find_not_finite(DeviceStream stream, std::span<const float> x, std::uint32_t* not_finite) {
  look<OneFloat>(stream, x, not_finite);
}
void find_not_finite(DeviceStream stream, std::span<const Fp16> x, std::uint32_t* not_finite) {
  look<TwoHalves<0x7c00>>(stream, x, not_finite);
}
void find_not_finite(DeviceStream stream, std::span<const Bf16> x, std::uint32_t* not_finite) {
  look<TwoHalves<0x7f80>>(stream, x, not_finite);
}

}  // namespace rehearse
