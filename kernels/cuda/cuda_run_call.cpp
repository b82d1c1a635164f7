// One function for each kernel of the list, as in kernels/host/run_call.cpp.
#include "kernels/cuda/cuda_run_call.hpp"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_call_operands.hpp"
#include "kernels/cuda/cuda_gemm.hpp"
#include "kernels/cuda/cuda_gemm_fp8.hpp"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "sim/program/kernel_list.hpp"

namespace rehearse {

namespace {

// Matrix products take 16-bit factors as they are.
bool multiplies_narrow(const KernelCall& call) {
  return call.kernel == Kernel::gemm && (call.narrow_operands & 0b11) == 0b11;
}

std::size_t count(const KernelCall& call, std::size_t i) {
  ASSERT(call.sizes[i] >= 0);
  return static_cast<std::size_t>(call.sizes[i]);
}

AttentionShape attention_shape(const KernelCall& call) {
  return {.batch = count(call, 0),
          .queries = count(call, 1),
          .keys = count(call, 2),
          .heads = count(call, 3),
          .key_heads = count(call, 4),
          .width = count(call, 5),
          .causal = call.sizes[6] != 0,
          .scale = static_cast<float>(call.numbers[0])};
}

// How products of fp32 numbers are made.
Precision wide(const KernelCall& call) {
  return call.narrow == Precision::tf32 ? Precision::tf32 : Precision::fp32;
}

GeluForm gelu(const DeviceOperands& x) { return x.flag(2) ? GeluForm::erf : GeluForm::tanh; }

MatrixProduct product_of(const KernelCall& call) {
  return {.m = count(call, 0),
          .n = count(call, 1),
          .k = count(call, 2),
          .transpose_a = call.sizes[3] != 0,
          .transpose_b = call.sizes[4] != 0,
          .alpha = static_cast<float>(call.numbers[0]),
          .beta = static_cast<float>(call.numbers[1]),
          .a_stride = count(call, 5),
          .b_stride = count(call, 6),
          .c_stride = count(call, 7)};
}

// e4m3 by e4m3, as calibration measures it: A[m,k] B[n,k]', rows without gaps, C in fp32.
void start_fp8_gemm(const CallPlace& place, const KernelCall& call,
                    std::span<const std::span<std::byte>> operands) {
  constexpr std::size_t workspace = 4 << 20;  // what cuBLAS itself takes before Hopper
  const MatrixProduct product = product_of(call);
  ASSERT(!product.transpose_a && product.transpose_b && call.narrow_operands == 0b011);
  gemm_fp8(place.blas, place.stream, {product.m, product.n, product.k}, {operands[0].data()},
           {operands[1].data()}, reinterpret_cast<float*>(operands[2].data()),
           {place.scratch(workspace), workspace});
}

void start_narrow_gemm(const CallPlace& place, const KernelCall& call,
                       std::span<const std::span<std::byte>> operands) {
  if (call.narrow == Precision::fp8) return start_fp8_gemm(place, call, operands);
  const Precision result = (call.narrow_operands >> 2 & 1) != 0 ? call.narrow : Precision::fp32;
  gemm(place.blas, place.stream, product_of(call), {operands[0].data(), call.narrow},
       {operands[1].data(), call.narrow}, {operands[2].data(), result});
}

void start_attention(const CallPlace& place, const DeviceOperands& x) {
  const AttentionShape shape = attention_shape(x.call());
  DeviceStream on = place.stream;
  switch (x.call().kernel) {
    case Kernel::attention:
      return attention(on, shape, {x[0], x[1], x[2]}, x[3], x[4]);
    case Kernel::attention_backward:
      return attention_backward(on, shape, {x[0], x[1], x[2]}, x[3], x[4], x[5],
                                x.take<float>(shape.score_rows()), {x[6], x[7], x[8]});
    case Kernel::attention_pairs:
      return attention_pairs(on, shape, x[0], x[1], x[2]);
    case Kernel::attention_over_keys:
      return attention_over_keys(on, shape, x[0], x[1], x[2]);
    case Kernel::attention_over_queries:
      return attention_over_queries(on, shape, x[0], x[1], x[2]);
    case Kernel::attention_softmax:
      return attention_softmax(on, shape, x[0], x[1]);
    case Kernel::attention_softmax_backward:
      return attention_softmax_backward(on, shape, x[0], x[1], x[2]);
    default:
      ASSERT(false);
  }
}

void start(const CallPlace& place, const KernelCall& call, const DeviceOperands& x) {
  DeviceStream on = place.stream;
  switch (call.kernel) {
    case Kernel::gemm:
      return gemm(place.blas, on, product_of(call), {x[0].data(), wide(call)},
                  {x[1].data(), wide(call)}, {x[2].data(), wide(call)});
    case Kernel::add:
      return add(on, x[0], x[1], x[2]);
    case Kernel::add_into:
      return add_into(on, x[0], x[1]);
    case Kernel::scale:
      return scale(on, x[0], x.real(0), x[1]);
    case Kernel::copy:
      ASSERT(x.as<std::byte>(0).size() == x.as<std::byte>(1).size());
      CUDA_TRY(cudaMemcpyAsync(x.as<std::byte>(1).data(), x.as<std::byte>(0).data(),
                               x.as<std::byte>(0).size(), cudaMemcpyDeviceToDevice, on));
      return;
    case Kernel::zero:
      CUDA_TRY(cudaMemsetAsync(x.as<std::byte>(0).data(), 0, x.as<std::byte>(0).size(), on));
      return;
    case Kernel::add_bias:
      return add_bias(on, x[0], x[1], x.rows(), x[2]);
    case Kernel::add_column_sums:
      return add_column_sums(on, x[0], x.rows(), x[1]);
    case Kernel::relu:
      return relu(on, x[0], x[1]);
    case Kernel::relu_backward:
      return relu_backward(on, x[0], x[1], x[2]);
    case Kernel::bias_gelu:
      return bias_gelu(on, x[0], x[1], x.rows(), gelu(x), x[2]);
    case Kernel::bias_gelu_backward:
      return bias_gelu_backward(on, x[0], x[1], x[2], x.rows(), gelu(x), x[3], {});
    case Kernel::swiglu:
      return swiglu(on, x[0], x[1], x[2]);
    case Kernel::swiglu_backward:
      return swiglu_backward(on, x[0], x[1], x[2], x[3], x[4]);
    case Kernel::layer_norm:
      return layer_norm(on, x[0], x[1], x[2], x.rows(), x.real(0), x[3], {x[4], x[5]});
    case Kernel::layer_norm_backward:
      return layer_norm_input(on, x[0], x[1], x[2], x.rows(), {x[3], x[4]}, x[5]);
    case Kernel::layer_norm_weights:
      return layer_norm_weights(on, x[0], x[1], x.rows(), {x[2], x[3]}, x[4], x[5]);
    case Kernel::rms_norm:
      return rms_norm(on, x[0], x[1], x.rows(), x.real(0), x[2], x[3]);
    case Kernel::rms_norm_backward:
      return rms_norm_input(on, x[0], x[1], x[2], x.rows(), x[3], x[4]);
    case Kernel::rms_norm_weights:
      return rms_norm_weights(on, x[0], x[1], x.rows(), x[2], x[3]);
    default:
      return call.kernel < Kernel::embedding     ? start_attention(place, x)
             : call.kernel < Kernel::add_squares ? start_end_call(x)
             : call.kernel < Kernel::dropout     ? start_update_call(x)
                                                 : start_regular_call(x);
  }
}

}  // namespace

DeviceOperands::DeviceOperands(const CallPlace& place, const KernelCall& call,
                               std::span<const std::span<std::byte>> bytes)
    : CallArguments{call, bytes}, place_{place}, widened_(bytes.size()) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!is_narrow(i)) continue;
    widened_[i] = take<float>(bytes[i].size() / 2);
    if (entry_of(call.kernel).operands[i] == 'w') continue;
    if (call.narrow == Precision::fp16)
      cast(place.stream, std::span<const Fp16>{as<Fp16>(i)}, widened_[i]);
    else
      cast(place.stream, std::span<const Bf16>{as<Bf16>(i)}, widened_[i]);
  }
}

void DeviceOperands::store() const {
  for (std::size_t i = 0; i < operands(); ++i) {
    if (!is_narrow(i) || !writes_operand(call().kernel, i)) continue;
    if (call().narrow == Precision::fp16)
      cast(place_.stream, std::span<const float>{widened_[i]}, as<Fp16>(i));
    else
      cast(place_.stream, std::span<const float>{widened_[i]}, as<Bf16>(i));
  }
}

void start_call(const CallPlace& place, const KernelCall& call,
                std::span<const std::span<std::byte>> operands) {
  if (multiplies_narrow(call)) return start_narrow_gemm(place, call, operands);
  const DeviceOperands numbers{place, call, operands};
  start(place, call, numbers);
  numbers.store();
}

}  // namespace rehearse
