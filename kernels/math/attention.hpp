// Scaled dot-product attention (Vaswani et al. 2017), causal or not, with heads of keys and values
// that several query heads share (Ainslie et al. 2023); forward and backward.
//
//   for each query: scores = scale · q·k over the keys it sees, P = softmax(scores), y = P v
//
//   memory, [batch][position][head][number]:
//     queries, y   batch × queries × heads × width          query head h reads key head
//     keys, values batch × keys × key_heads × width         h / (heads / key_heads)
//
// The backward pass computes P again from the log-sum-exp that the forward pass leaves, one number
// for each query and head, as FlashAttention does (Dao et al. 2022, section 3.1 and appendix B):
//   D = Σ y · y_gradient,  dS = P · (y_gradient · v - D)
//   dq = scale · dS k,  dk = scale · dSᵀ q,  dv = Pᵀ y_gradient
#pragma once

#include <cstddef>
#include <span>

namespace rehearse {

struct AttentionShape {
  std::size_t batch = 0, queries = 0, keys = 0;
  std::size_t heads = 0, key_heads = 0;  // key_heads divides heads
  std::size_t width = 0;                 // of a head
  /// Query i sees the keys 0 … i + keys - queries: the last query sees them all. One that sees
  /// none gives zeros.
  bool causal = false;
  float scale = 1;  // usually 1 / √width

  constexpr std::size_t query_numbers() const { return batch * queries * heads * width; }
  constexpr std::size_t key_numbers() const { return batch * keys * key_heads * width; }
  constexpr std::size_t score_rows() const { return batch * heads * queries; }
};

struct AttentionInputs {
  std::span<const float> queries, keys, values;
};

/// Writes y, and the log-sum-exp of each row of scores at [batch][head][query].
void attention(const AttentionShape& shape, const AttentionInputs& inputs, std::span<float> y,
               std::span<float> log_sums);

struct AttentionGradients {
  std::span<float> queries, keys, values;
};

/// Writes the gradients of all inputs.
void attention_backward(const AttentionShape& shape, const AttentionInputs& inputs,
                        std::span<const float> y, std::span<const float> log_sums,
                        std::span<const float> y_gradient, const AttentionGradients& gradients);

}  // namespace rehearse
