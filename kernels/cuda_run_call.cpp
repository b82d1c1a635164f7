// One function for each kernel of the list, as in kernels/run_call.cpp.
#include "kernels/cuda_run_call.hpp"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <vector>

#include "kernels/cuda_gemm.hpp"
#include "kernels/cuda_kernels.hpp"
#include "kernels/cuda_try.hpp"
#include "sim/assert.hpp"
#include "sim/error.hpp"
#include "sim/kernel_list.hpp"

namespace rehearse {

namespace {

constexpr std::size_t alignment = 256;
std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

bool is_narrow(const KernelCall& call, std::size_t i) {
  return (call.narrow_operands >> i & 1) != 0;
}

// Matrix products take 16-bit factors as they are.
bool multiplies_narrow(const KernelCall& call) {
  return call.kernel == Kernel::gemm && is_narrow(call, 0) && is_narrow(call, 1);
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

class DeviceOperands {
 public:
  DeviceOperands(const CallPlace& place, const KernelCall& call,
                 std::span<const std::span<std::byte>> bytes)
      : place_{place}, call_{call}, bytes_{bytes}, widened_(bytes.size()) {
    ASSERT(bytes.size() == entry_of(call.kernel).operands.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!is_narrow(call, i)) continue;
      ASSERT(call.narrow == Precision::fp16 || call.narrow == Precision::bf16);
      widened_[i] = take<float>(bytes[i].size() / 2);
      if (entry_of(call.kernel).operands[i] == 'w') continue;
      if (call.narrow == Precision::fp16)
        cast(place.stream, std::span<const Fp16>{as<Fp16>(i)}, widened_[i]);
      else
        cast(place.stream, std::span<const Bf16>{as<Bf16>(i)}, widened_[i]);
    }
  }

  void store() const {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (!is_narrow(call_, i) || !writes_operand(call_.kernel, i)) continue;
      if (call_.narrow == Precision::fp16)
        cast(place_.stream, std::span<const float>{widened_[i]}, as<Fp16>(i));
      else
        cast(place_.stream, std::span<const float>{widened_[i]}, as<Bf16>(i));
    }
  }

  std::span<float> operator[](std::size_t i) const {
    return is_narrow(call_, i) ? widened_[i] : as<float>(i);
  }
  template <class Number>
  std::span<Number> as(std::size_t i) const {
    ASSERT(bytes_[i].size() % sizeof(Number) == 0);
    return {reinterpret_cast<Number*>(bytes_[i].data()), bytes_[i].size() / sizeof(Number)};
  }
  template <class Number>
  std::span<Number> take(std::size_t numbers) {
    const std::size_t begin = taken_;
    taken_ += rounded(numbers * sizeof(Number));
    ASSERT(taken_ <= place_.scratch.size());
    return {reinterpret_cast<Number*>(place_.scratch.data() + begin), numbers};
  }
  RowShape rows() const { return {count(call_, 0), count(call_, 1)}; }
  float real(std::size_t i) const { return static_cast<float>(call_.numbers[i]); }
  GeluForm gelu() const { return call_.sizes[2] != 0 ? GeluForm::erf : GeluForm::tanh; }

 private:
  const CallPlace& place_;
  const KernelCall& call_;
  std::span<const std::span<std::byte>> bytes_;
  std::vector<std::span<float>> widened_;
  std::size_t taken_ = 0;
};

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

void start_narrow_gemm(const CallPlace& place, const KernelCall& call,
                       std::span<const std::span<std::byte>> operands) {
  const Precision result = is_narrow(call, 2) ? call.narrow : Precision::fp32;
  gemm(place.blas, place.stream, product_of(call), {operands[0].data(), call.narrow},
       {operands[1].data(), call.narrow}, {operands[2].data(), result});
}

void start(const CallPlace& place, const KernelCall& call, DeviceOperands& x) {
  DeviceStream on = place.stream;
  switch (call.kernel) {
    case Kernel::gemm:
      return gemm(place.blas, on, product_of(call), {x[0].data()}, {x[1].data()}, {x[2].data()});
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
      return bias_gelu(on, x[0], x[1], x.rows(), x.gelu(), x[2]);
    case Kernel::bias_gelu_backward:
      return bias_gelu_backward(on, x[0], x[1], x[2], x.rows(), x.gelu(), x[3], {});
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
    case Kernel::attention:
      return attention(on, attention_shape(call), {x[0], x[1], x[2]}, x[3], x[4]);
    case Kernel::attention_backward:
      return attention_backward(on, attention_shape(call), {x[0], x[1], x[2]}, x[3], x[4], x[5],
                                x.take<float>(attention_shape(call).score_rows()),
                                {x[6], x[7], x[8]});
    default:
      throw DeviceError(
          fmt::format("kernel '{}' has no CUDA form yet", entry_of(call.kernel).name));
  }
}

}  // namespace

std::size_t scratch_bytes(const KernelCall& call, std::span<const std::size_t> sizes) {
  std::size_t bytes = 0;
  if (!multiplies_narrow(call))
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (is_narrow(call, i)) bytes += rounded(2 * sizes[i]);
  if (call.kernel == Kernel::attention_backward)
    bytes += rounded(attention_shape(call).score_rows() * sizeof(float));
  return bytes;
}

void start_call(const CallPlace& place, const KernelCall& call,
                std::span<const std::span<std::byte>> operands) {
  if (multiplies_narrow(call)) return start_narrow_gemm(place, call, operands);
  DeviceOperands numbers{place, call, operands};
  start(place, call, numbers);
  numbers.store();
}

}  // namespace rehearse
