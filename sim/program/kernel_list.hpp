// The kernels that ops of a Program may name, with what each does to its operands. Numbers are fp32
// unless said otherwise; matrices are row-major. kernels/host/run_call.cpp runs them.
//
// An operand is read (r), written (w) or both (m). `sizes` and `numbers` are those of KernelCall.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/program/kernel_call.hpp"

namespace rehearse {

enum class Kernel : std::uint16_t {
  gemm,                // A B C: C = alpha op(A) op(B) + beta C; sizes m n k ta tb, strides of A B C
  add,                 // a b y
  add_into,            // x sum
  scale,               // x y; factor
  copy,                // x y, byte by byte
  zero,                // y
  add_bias,            // x bias y; rows width
  add_column_sums,     // x sums; rows width
  relu,                // x y
  relu_backward,       // y_gradient y x_gradient
  bias_gelu,           // x bias y; rows width form (0 tanh, 1 erf)
  bias_gelu_backward,  // y_gradient x bias x_gradient; rows width form
  swiglu,              // gate up y
  swiglu_backward,     // y_gradient gate up gate_gradient up_gradient
  layer_norm,          // x weight bias y mean rate; rows width; epsilon
  layer_norm_backward,  // y_gradient x weight mean rate x_gradient; rows width
  layer_norm_weights,   // y_gradient x mean rate weight_gradient bias_gradient; rows width
  rms_norm,             // x weight y rate; rows width; epsilon
  rms_norm_backward,    // y_gradient x weight rate x_gradient; rows width
  rms_norm_weights,     // y_gradient x rate weight_gradient; rows width
  attention,            // q k v y log_sums; batch queries keys heads key_heads width causal; scale
  attention_backward,   // q k v y log_sums y_gradient dq dk dv; as attention
  // Of attention with its scores in memory (kernels/math/attention_parts.hpp); sizes as attention.
  attention_pairs,             // x y pairs
  attention_over_keys,         // pairs y x
  attention_over_queries,      // pairs x y
  attention_softmax,           // scores probabilities
  attention_softmax_backward,  // probabilities gradient scores_gradient
  embedding,            // table tokens y; rows width first: words first … of the vocabulary
  embedding_backward,   // y_gradient tokens table_gradient; as embedding
  add_positions,        // table y; rows width length
  positions_backward,   // y_gradient table_gradient; rows width length
  rotate,               // x y; rows width head_width length back; base
  class_loss,           // logits labels loss(fp64); rows classes parts
  class_loss_backward,  // logits labels state gradient; rows classes parts first count; weight
  vocabulary_max,       // logits largest; rows width first valid
  vocabulary_sums,      // logits targets largest target sum; as before
  vocabulary_softmax,   // logits largest target sum probabilities loss(fp64); as before
  vocabulary_gradient,  // probabilities targets state gradient; as before; weight
  add_squares,          // x sum(fp64); weight
  round_sum,            // sum(fp64) rounded
  gradient_factor,      // squares state; limit of the norm
  count_step,           // state
  sgd,                  // w g state; rate
  momentum,             // w g velocity state; rate momentum
  adam,                 // w g first second state; rate beta1 beta2 epsilon
  lars_squares,         // w g state squares(2 fp64)
  lars,                 // w g velocity squares state; rate momentum trust
  lamb_update,          // w g first second state update; beta1 beta2 epsilon
  layer_squares,        // w update squares(2 fp64)
  lamb_apply,           // w update squares state; rate
  dgc_clip,             // gradient; ranks; limit of the norm of the sum
  dgc_accumulate,       // gradient velocity accumulated; momentum
  dgc_sample,           // accumulated state keys; seed, stream
  dgc_sort,             // keys sorted by a byte; which of the four
  dgc_select,           // velocity accumulated sorted_keys packet; whether velocities are masked
  dgc_add,              // packets sum; ranks
  dropout,              // x state y; seed stream first block stride; probability
  find_not_finite,      // x flag: 1 where any number is infinite or NaN, else what it was
  take_finite,          // flag state
  adjust_loss_scale,    // state; good steps before it grows; growth backoff least largest
  scale_loss,           // loss(fp64) state scaled(fp64)
  int8_largest,         // x largest: of the magnitudes
  int8_quantize,        // x largest codes(int8); ranks whose codes will be added
  int8_dequantize,      // codes(int8) largest x; ranks
};

struct KernelEntry {
  std::string_view name;
  std::string_view operands;  // a letter each: r, w, m
};

const KernelEntry& entry_of(Kernel kernel);
std::optional<Kernel> find_kernel(std::string_view name);
std::vector<std::string_view> kernel_names();

/// Whether the kernel writes its operand number i.
bool writes_operand(Kernel kernel, std::size_t i);

}  // namespace rehearse
