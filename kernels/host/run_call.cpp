// One function for each kernel of the list, in its order: sizes and operands as
// it names them.
#include "kernels/host/run_call.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/host/call_groups.hpp"
#include "kernels/host/call_operands.hpp"
#include "kernels/math/activation.hpp"
#include "kernels/math/attention.hpp"
#include "kernels/math/attention_parts.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/gemm.hpp"
#include "kernels/math/norm.hpp"

namespace rehearse {

namespace {

void run_gemm(CallOperands& x) {
  const MatrixProduct product{.m = x.whole(0),
                              .n = x.whole(1),
                              .k = x.whole(2),
                              .transpose_a = x.flag(3),
                              .transpose_b = x.flag(4),
                              .alpha = x.real(0),
                              .beta = x.real(1),
                              .a_stride = x.whole(5),
                              .b_stride = x.whole(6),
                              .c_stride = x.whole(7)};
  gemm(product, x[0], x[1], x[2]);
}

GeluForm gelu_form(const CallOperands& x) { return x.flag(2) ? GeluForm::erf : GeluForm::tanh; }

// The sum over rows for the bias is an op of its own (add_column_sums).
void run_bias_gelu_backward(CallOperands& x) {
  std::vector<float> bias_gradient(x.rows().width);
  bias_gelu_backward(x[0], x[1], x[2], x.rows(), gelu_form(x), x[3], bias_gradient);
}

// The references make the gradients of input and weights together; here they
// are ops apart, so each leaves what is not its own in scratch.
void run_layer_norm_backward(CallOperands& x) {
  std::vector<float> weight(x.rows().width), bias(x.rows().width);
  layer_norm_backward(x[0], x[1], x[2], x.rows(), {x[3], x[4]}, x[5], weight, bias);
}

void run_layer_norm_weights(CallOperands& x) {
  const std::vector<float> ones(x.rows().width, 1.0F);
  std::vector<float> input(x.rows().size());
  layer_norm_backward(x[0], x[1], ones, x.rows(), {x[2], x[3]}, input, x[4], x[5]);
}

void run_rms_norm_backward(CallOperands& x) {
  std::vector<float> weight(x.rows().width);
  rms_norm_backward(x[0], x[1], x[2], x.rows(), x[3], x[4], weight);
}

void run_rms_norm_weights(CallOperands& x) {
  const std::vector<float> ones(x.rows().width, 1.0F);
  std::vector<float> input(x.rows().size());
  rms_norm_backward(x[0], x[1], ones, x.rows(), x[2], input, x[3]);
}

AttentionShape attention_shape(const CallOperands& x) {
  return {.batch = x.whole(0),
          .queries = x.whole(1),
          .keys = x.whole(2),
          .heads = x.whole(3),
          .key_heads = x.whole(4),
          .width = x.whole(5),
          .causal = x.flag(6),
          .scale = x.real(0)};
}

void run_attention_backward(CallOperands& x) {
  attention_backward(attention_shape(x), {x[0], x[1], x[2]}, x[3], x[4], x[5], {x[6], x[7], x[8]});
}

void run_attention(Kernel kernel, CallOperands& x) {
  switch (kernel) {
    case Kernel::attention:
      return attention(attention_shape(x), {x[0], x[1], x[2]}, x[3], x[4]);
    case Kernel::attention_backward:
      return run_attention_backward(x);
    case Kernel::attention_pairs:
      return attention_pairs(attention_shape(x), x[0], x[1], x[2]);
    case Kernel::attention_over_keys:
      return attention_over_keys(attention_shape(x), x[0], x[1], x[2]);
    case Kernel::attention_over_queries:
      return attention_over_queries(attention_shape(x), x[0], x[1], x[2]);
    case Kernel::attention_softmax:
      return attention_softmax(attention_shape(x), x[0], x[1]);
    case Kernel::attention_softmax_backward:
      return attention_softmax_backward(attention_shape(x), x[0], x[1], x[2]);
    default:
      ASSERT(false);
  }
}

void run(Kernel kernel, CallOperands& x) {
  switch (kernel) {
    case Kernel::gemm:
      return run_gemm(x);
    case Kernel::add:
      return add(x[0], x[1], x[2]);
    case Kernel::add_into:
      return add_into(x[0], x[1]);
    case Kernel::scale:
      return scale(x[0], x.real(0), x[1]);
    case Kernel::copy:
      std::ranges::copy(x.as<std::byte>(0), x.as<std::byte>(1).begin());
      return;
    case Kernel::zero:
      std::ranges::fill(x.as<std::byte>(0), std::byte{});
      return;
    case Kernel::add_bias:
      return add_bias(x[0], x[1], x.rows(), x[2]);
    case Kernel::add_column_sums:
      return add_column_sums(x[0], x.rows(), x[1]);
    case Kernel::relu:
      return relu(x[0], x[1]);
    case Kernel::relu_backward:
      return relu_backward(x[0], x[1], x[2]);
    case Kernel::bias_gelu:
      return bias_gelu(x[0], x[1], x.rows(), gelu_form(x), x[2]);
    case Kernel::bias_gelu_backward:
      return run_bias_gelu_backward(x);
    case Kernel::swiglu:
      return swiglu(x[0], x[1], x[2]);
    case Kernel::swiglu_backward:
      return swiglu_backward(x[0], x[1], x[2], x[3], x[4]);
    case Kernel::layer_norm:
      return layer_norm(x[0], x[1], x[2], x.rows(), x.real(0), x[3], {x[4], x[5]});
    case Kernel::layer_norm_backward:
      return run_layer_norm_backward(x);
    case Kernel::layer_norm_weights:
      return run_layer_norm_weights(x);
    case Kernel::rms_norm:
      return rms_norm(x[0], x[1], x.rows(), x.real(0), x[2], x[3]);
    case Kernel::rms_norm_backward:
      return run_rms_norm_backward(x);
    case Kernel::rms_norm_weights:
      return run_rms_norm_weights(x);
    default:
      return kernel < Kernel::embedding     ? run_attention(kernel, x)
             : kernel < Kernel::add_squares ? run_end(kernel, x)
             : kernel < Kernel::dgc_clip    ? run_update(kernel, x)
             : kernel < Kernel::dropout     ? run_compression(kernel, x)
                                            : run_regular(kernel, x);
  }
}

}  // namespace

void run_call(const KernelCall& call, std::span<const std::span<std::byte>> operands) {
  CallOperands numbers{call, operands};
  run(call.kernel, numbers);
  numbers.store();
}

void run_calls(std::span<const KernelCall> calls, std::span<const std::span<std::byte>> operands) {
  std::size_t taken = 0;
  for (const KernelCall& call : calls) {
    run_call(call, operands.subspan(taken, call.operands));
    taken += call.operands;
  }
  ASSERT(taken == operands.size());
}

}  // namespace rehearse
