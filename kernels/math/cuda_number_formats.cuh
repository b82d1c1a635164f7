// fp16, bf16 and fp8 on the device, by CUDA's own conversions: one instruction each where the
// device has it. The same bits as kernels/math/number_formats.cpp.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/math/number_formats.hpp"

namespace rehearse {

__device__ inline float widened(Fp16 value) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(value)));
}
__device__ inline float widened(Bf16 value) {
  return __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(value)));
}
__device__ inline float widened(E4m3 value) {
  const __half_raw half =
      __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(value), __NV_E4M3);
  return __half2float(__half(half));
}
__device__ inline float widened(E5m2 value) {
  const __half_raw half =
      __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(value), __NV_E5M2);
  return __half2float(__half(half));
}

template <class Narrow>
__device__ Narrow narrowed(float value);
template <>
__device__ inline Fp16 narrowed(float value) {
  return static_cast<Fp16>(__half_as_ushort(__float2half_rn(value)));
}
template <>
__device__ inline Bf16 narrowed(float value) {
  return static_cast<Bf16>(__bfloat16_as_ushort(__float2bfloat16_rn(value)));
}

__device__ inline __nv_fp8_storage_t fp8_bits(float value, Fp8Range range,
                                              __nv_fp8_interpretation_t format) {
  return range == Fp8Range::saturate ? __nv_cvt_float_to_fp8(value, __NV_SATFINITE, format)
                                     : __nv_cvt_float_to_fp8(value, __NV_NOSAT, format);
}

}  // namespace rehearse
