// 16-bit numbers are widened for each operation and rounded after it, as NCCL does.
#include "tests/emulated_cuda/nccl_numbers.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "kernels/math/number_formats.hpp"
#include "sim/base/assert.hpp"

namespace emulated_cuda {

namespace {

using rehearse::Bf16;
using rehearse::Fp16;

template <class Number>
Number apply(ncclRedOp_t operation, Number a, Number b) {
  switch (operation) {
    case ncclProd:
      return static_cast<Number>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return static_cast<Number>(a + b);
  }
}
Fp16 apply(ncclRedOp_t operation, Fp16 a, Fp16 b) {
  return rehearse::to_fp16(apply(operation, to_float(a), to_float(b)));
}
Bf16 apply(ncclRedOp_t operation, Bf16 a, Bf16 b) {
  return rehearse::to_bf16(apply(operation, to_float(a), to_float(b)));
}

// Calls use with a null pointer of the type's C++ form.
template <class Use>
void with_type(ncclDataType_t type, Use use) {
  switch (type) {
    case ncclInt8:
      return use(static_cast<std::int8_t*>(nullptr));
    case ncclUint8:
      return use(static_cast<std::uint8_t*>(nullptr));
    case ncclInt32:
      return use(static_cast<std::int32_t*>(nullptr));
    case ncclUint32:
      return use(static_cast<std::uint32_t*>(nullptr));
    case ncclInt64:
      return use(static_cast<std::int64_t*>(nullptr));
    case ncclUint64:
      return use(static_cast<std::uint64_t*>(nullptr));
    case ncclFloat16:
      return use(static_cast<Fp16*>(nullptr));
    case ncclBfloat16:
      return use(static_cast<Bf16*>(nullptr));
    case ncclFloat32:
      return use(static_cast<float*>(nullptr));
    case ncclFloat64:
      return use(static_cast<double*>(nullptr));
    default:
      ASSERT(!"a type of NCCL that is not emulated");
  }
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  std::size_t bytes = 0;
  with_type(type, [&](auto* number) { bytes = sizeof(*number); });
  return bytes;
}

void combine(ncclDataType_t type, ncclRedOp_t operation, const void* input, void* total,
             std::size_t count) {
  with_type(type, [&](auto* number) {
    auto* to = static_cast<decltype(number)>(total);
    const auto* from = static_cast<decltype(number)>(const_cast<void*>(input));
    for (std::size_t i = 0; i < count; ++i) to[i] = apply(operation, to[i], from[i]);
  });
}

void divide(ncclDataType_t type, void* total, std::size_t count, std::size_t by) {
  ASSERT(type == ncclFloat32);
  auto* numbers = static_cast<float*>(total);
  for (std::size_t i = 0; i < count; ++i) numbers[i] /= static_cast<float>(by);
}

}  // namespace emulated_cuda
