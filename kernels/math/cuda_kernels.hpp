// The CUDA kernels, as functions that start them on a stream and return at once. Each has the name
// and the arguments of its CPU reference (see that header for formulas and contracts), with the
// stream before them; spans and pointers are memory of the stream's device, never read here.
//
// What differs: numbers that the reference returns are written to device memory, and scratch
// memory is the caller's. All give the same bits on every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/math/activation.hpp"
#include "kernels/math/attention.hpp"
#include "kernels/math/cross_entropy.hpp"
#include "kernels/math/deep_gradient_compression.hpp"
#include "kernels/math/dropout.hpp"
#include "kernels/math/layerwise.hpp"
#include "kernels/math/loss_scale.hpp"
#include "kernels/math/norm.hpp"
#include "kernels/math/number_formats.hpp"
#include "kernels/math/optimizers.hpp"
#include "kernels/math/positions.hpp"
#include "kernels/math/rows.hpp"
#include "kernels/math/step_state.hpp"
#include "kernels/math/token.hpp"
#include "kernels/math/vocabulary_loss.hpp"

struct CUstream_st;  // what a cudaStream_t points to

namespace rehearse {

using DeviceStream = CUstream_st*;

// elementwise.hpp; add_into also in 16 bits, where each sum is rounded
void add(DeviceStream stream, std::span<const float> a, std::span<const float> b,
         std::span<float> y);
void add3(DeviceStream stream, std::span<const float> a, std::span<const float> b,
          std::span<const float> c, std::span<float> y);
void add_into(DeviceStream stream, std::span<const float> x, std::span<float> sum);
void add_into(DeviceStream stream, std::span<const Fp16> x, std::span<Fp16> sum);
void add_into(DeviceStream stream, std::span<const Bf16> x, std::span<Bf16> sum);
/// largest = max(largest, x): what a transfer that keeps the larger does.
void larger_into(DeviceStream stream, std::span<const float> x, std::span<float> largest);
void larger_into(DeviceStream stream, std::span<const Fp16> x, std::span<Fp16> largest);
void larger_into(DeviceStream stream, std::span<const Bf16> x, std::span<Bf16> largest);
void scale(DeviceStream stream, std::span<const float> x, float factor, std::span<float> y);
void add_scaled(DeviceStream stream, std::span<const float> x, float factor, std::span<float> y);

// number_formats.hpp
void cast(DeviceStream stream, std::span<const float> source, std::span<Fp16> target);
void cast(DeviceStream stream, std::span<const float> source, std::span<Bf16> target);
void cast(DeviceStream stream, std::span<const float> source, std::span<E4m3> target,
          Fp8Range range = Fp8Range::saturate);
void cast(DeviceStream stream, std::span<const float> source, std::span<E5m2> target,
          Fp8Range range = Fp8Range::saturate);
void cast(DeviceStream stream, std::span<const Fp16> source, std::span<float> target);
void cast(DeviceStream stream, std::span<const Bf16> source, std::span<float> target);
void cast(DeviceStream stream, std::span<const E4m3> source, std::span<float> target);
void cast(DeviceStream stream, std::span<const E5m2> source, std::span<float> target);

// rows.hpp
void add_column_sums(DeviceStream stream, std::span<const float> x, RowShape shape,
                     std::span<float> sums);

// activation.hpp; an empty bias_gradient leaves its sum out
void bias_gelu(DeviceStream stream, std::span<const float> x, std::span<const float> bias,
               RowShape shape, GeluForm form, std::span<float> y);
void bias_gelu_backward(DeviceStream stream, std::span<const float> y_gradient,
                        std::span<const float> x, std::span<const float> bias, RowShape shape,
                        GeluForm form, std::span<float> x_gradient, std::span<float> bias_gradient);
void add_bias(DeviceStream stream, std::span<const float> x, std::span<const float> bias,
              RowShape shape, std::span<float> y);
void relu(DeviceStream stream, std::span<const float> x, std::span<float> y);
void relu_backward(DeviceStream stream, std::span<const float> y_gradient, std::span<const float> y,
                   std::span<float> x_gradient);
void silu(DeviceStream stream, std::span<const float> x, std::span<float> y);
void silu_backward(DeviceStream stream, std::span<const float> y_gradient, std::span<const float> x,
                   std::span<float> x_gradient);
void swiglu(DeviceStream stream, std::span<const float> gate, std::span<const float> up,
            std::span<float> y);
void swiglu_backward(DeviceStream stream, std::span<const float> y_gradient,
                     std::span<const float> gate, std::span<const float> up,
                     std::span<float> gate_gradient, std::span<float> up_gradient);

// dropout.hpp
void dropout(DeviceStream stream, std::span<const float> x, const Dropout& mask,
             std::span<float> y);
void dropout_add(DeviceStream stream, std::span<const float> x, std::span<const float> residual,
                 const Dropout& mask, std::span<float> y);
/// The masks of the step that the state tells, on runs of the whole tensor (regular_calls.cpp).
void dropout(DeviceStream stream, std::span<const float> x, const StepState* state,
             const Dropout& mask, DropoutRuns runs, std::span<float> y);

// norm.hpp; backward as a whole, or its halves: of the input, and of the parameters
void layer_norm(DeviceStream stream, std::span<const float> x, std::span<const float> weight,
                std::span<const float> bias, RowShape shape, float epsilon, std::span<float> y,
                NormStatistics statistics);
void layer_norm_backward(DeviceStream stream, std::span<const float> y_gradient,
                         std::span<const float> x, std::span<const float> weight, RowShape shape,
                         NormStatistics statistics, std::span<float> x_gradient,
                         std::span<float> weight_gradient, std::span<float> bias_gradient);
void layer_norm_input(DeviceStream stream, std::span<const float> y_gradient,
                      std::span<const float> x, std::span<const float> weight, RowShape shape,
                      NormStatistics statistics, std::span<float> x_gradient);
void layer_norm_weights(DeviceStream stream, std::span<const float> y_gradient,
                        std::span<const float> x, RowShape shape, NormStatistics statistics,
                        std::span<float> weight_gradient, std::span<float> bias_gradient);
void rms_norm(DeviceStream stream, std::span<const float> x, std::span<const float> weight,
              RowShape shape, float epsilon, std::span<float> y, std::span<float> rate);
void rms_norm_backward(DeviceStream stream, std::span<const float> y_gradient,
                       std::span<const float> x, std::span<const float> weight, RowShape shape,
                       std::span<const float> rate, std::span<float> x_gradient,
                       std::span<float> weight_gradient);
void rms_norm_input(DeviceStream stream, std::span<const float> y_gradient,
                    std::span<const float> x, std::span<const float> weight, RowShape shape,
                    std::span<const float> rate, std::span<float> x_gradient);
void rms_norm_weights(DeviceStream stream, std::span<const float> y_gradient,
                      std::span<const float> x, RowShape shape, std::span<const float> rate,
                      std::span<float> weight_gradient);

// softmax.hpp
void softmax(DeviceStream stream, std::span<const float> x, RowShape shape, std::span<float> y);
void softmax_backward(DeviceStream stream, std::span<const float> y_gradient,
                      std::span<const float> y, RowShape shape, std::span<float> x_gradient);

// cross_entropy.hpp; a target outside of the vocabulary gives NaN
void cross_entropy(DeviceStream stream, std::span<const float> logits,
                   std::span<const Token> targets, RowShape shape, std::span<float> losses,
                   LossSum* total);
void cross_entropy_backward(DeviceStream stream, std::span<const float> logits,
                            std::span<const Token> targets, RowShape shape, float scale,
                            std::span<float> logit_gradient);

// embedding.hpp; the table holds words first …; a token outside of it gives NaN, which nothing
// hides, or zeros where other ranks have the rest
struct WordsHere {
  std::int64_t first = 0;
  float outside = std::numeric_limits<float>::quiet_NaN();
};
void embedding(DeviceStream stream, std::span<const float> table, RowShape table_shape,
               std::span<const Token> tokens, std::span<float> y, const WordsHere& words = {});
void embedding_backward(DeviceStream stream, std::span<const float> y_gradient,
                        std::span<const Token> tokens, std::span<float> table_gradient,
                        RowShape table_shape, std::int64_t first = 0);

// attention.hpp; row_dots is scratch of shape.score_rows() numbers
inline constexpr std::size_t largest_attention_width = 128;  // of a head
void attention(DeviceStream stream, const AttentionShape& shape, const AttentionInputs& inputs,
               std::span<float> y, std::span<float> log_sums);
void attention_backward(DeviceStream stream, const AttentionShape& shape,
                        const AttentionInputs& inputs, std::span<const float> y,
                        std::span<const float> log_sums, std::span<const float> y_gradient,
                        std::span<float> row_dots, const AttentionGradients& gradients);

// attention_parts.hpp
void attention_pairs(DeviceStream stream, const AttentionShape& shape, std::span<const float> x,
                     std::span<const float> y, std::span<float> pairs);
void attention_over_keys(DeviceStream stream, const AttentionShape& shape,
                         std::span<const float> pairs, std::span<const float> y,
                         std::span<float> x);
void attention_over_queries(DeviceStream stream, const AttentionShape& shape,
                            std::span<const float> pairs, std::span<const float> x,
                            std::span<float> y);
void attention_softmax(DeviceStream stream, const AttentionShape& shape,
                       std::span<const float> scores, std::span<float> probabilities);
void attention_softmax_backward(DeviceStream stream, const AttentionShape& shape,
                                std::span<const float> probabilities,
                                std::span<const float> gradient, std::span<float> scores_gradient);

// positions.hpp
void add_positions(DeviceStream stream, std::span<const float> table, RowShape shape,
                   std::size_t length, std::span<float> y);
void positions_backward(DeviceStream stream, std::span<const float> y_gradient, RowShape shape,
                        std::size_t length, std::span<float> table_gradient);
void rotate(DeviceStream stream, std::span<const float> x, const Rotation& rotation,
            std::span<float> y);

// vocabulary_loss.hpp, and the losses of end_calls.cpp: the scale is weight · state->loss_scale
void vocabulary_max(DeviceStream stream, std::span<const float> logits, const VocabularyPart& part,
                    std::span<float> largest);
void vocabulary_sums(DeviceStream stream, std::span<const float> logits,
                     std::span<const Token> targets, std::span<const float> largest,
                     const VocabularyPart& part, std::span<float> target, std::span<float> sum);
void vocabulary_softmax(DeviceStream stream, std::span<const float> logits,
                        std::span<const float> largest, std::span<const float> target,
                        std::span<const float> sum, const VocabularyPart& part,
                        std::span<float> probabilities, double* losses);
void vocabulary_gradient(DeviceStream stream, std::span<const float> probabilities,
                         std::span<const Token> targets, double weight, const StepState* state,
                         const VocabularyPart& part, std::span<float> gradient);
/// From [part][row][class of the part] to rows.
void gather_classes(DeviceStream stream, std::span<const float> logits, RowShape shape,
                    std::size_t parts, std::span<float> in_rows);
/// Of the classes first …, as many as `gradient` has room for.
void class_gradient(DeviceStream stream, std::span<const float> logits,
                    std::span<const Token> targets, RowShape shape, double weight,
                    const StepState* state, std::size_t first, std::span<float> gradient);

// top_k.hpp; scratch has top_k_scratch_words(values.size()), and of the sample's size for a sample
std::size_t top_k_scratch_words(std::size_t numbers);
void exact_threshold(DeviceStream stream, std::span<const float> values, std::size_t k,
                     std::span<std::uint32_t> scratch, float* threshold);
void sampled_threshold(DeviceStream stream, std::span<const float> values, std::size_t k,
                       const RandomWords& words, std::span<float> sample,
                       std::span<std::uint32_t> scratch, float* threshold);
/// The limit is the size of `indices`, of which the first *found are written.
void select_above(DeviceStream stream, std::span<const float> values, const float* threshold,
                  std::span<std::uint32_t> scratch, std::span<std::uint32_t> indices,
                  std::uint32_t* found);

// sparse.hpp and deep_gradient_compression.hpp; the indices of one call differ from each other
void sparse_gather(DeviceStream stream, std::span<const float> source,
                   std::span<const std::uint32_t> indices, std::span<float> target);
void sparse_scatter_add(DeviceStream stream, std::span<const float> values,
                        std::span<const std::uint32_t> indices, std::span<float> target);
void sparse_clear(DeviceStream stream, std::span<const std::uint32_t> indices,
                  std::span<float> target);
void correct_momentum(DeviceStream stream, std::span<const float> gradient, float momentum,
                      CompressionState state);
void take_out(DeviceStream stream, CompressionState state, std::span<const std::uint32_t> indices,
              std::span<float> values);

// compression_calls.cpp: a packet's places beyond *found stay as they are; packets with such
// places (number 0, nothing to add) are added by add_packet
void sample_keys(DeviceStream stream, std::span<const float> values, const StepState* state,
                 const RandomWords& words, std::span<std::uint32_t> keys);
std::size_t sort_scratch_words(std::size_t keys);
void sort_by_byte(DeviceStream stream, std::span<const std::uint32_t> keys, std::size_t byte,
                  std::span<std::uint32_t> scratch, std::span<std::uint32_t> sorted);
void fill_packet(DeviceStream stream, CompressionState state,
                 std::span<const std::uint32_t> indices, const std::uint32_t* found, bool masks,
                 std::span<float> values);
void add_packet(DeviceStream stream, std::span<const std::uint32_t> indices,
                std::span<const float> values, std::span<float> sum);

// int8_gradients.hpp
void int8_scale(DeviceStream stream, std::span<const float> x, float* scale);
void largest_magnitude(DeviceStream stream, std::span<const float> x, float* largest);
void shared_int8_scale(DeviceStream stream, const float* largest, std::size_t ranks, float* scale);
void quantize(DeviceStream stream, std::span<const float> x, const float* scale,
              std::span<std::int8_t> codes);
void dequantize(DeviceStream stream, std::span<const std::int8_t> codes, const float* scale,
                std::span<float> x);
void add_codes(DeviceStream stream, std::span<const std::int8_t> codes,
               std::span<std::int32_t> sum);
void add_codes(DeviceStream stream, std::span<const std::int8_t> codes, std::span<std::int8_t> sum);
void dequantize(DeviceStream stream, std::span<const std::int32_t> sums, const float* scale,
                std::span<float> x);

// loss_scale.hpp: *not_finite becomes 1.0F if any number is infinite or NaN, else it stays as it is
void find_not_finite(DeviceStream stream, std::span<const float> x, std::uint32_t* not_finite);
void find_not_finite(DeviceStream stream, std::span<const Fp16> x, std::uint32_t* not_finite);
void find_not_finite(DeviceStream stream, std::span<const Bf16> x, std::uint32_t* not_finite);

// step_state.hpp, as update_calls.cpp and regular_calls.cpp use it
struct StepFactors {
  float gradient_factor, first, second, is_finite;  // first, second: Adam's bias corrections
};
void step_factors(DeviceStream stream, const StepState* state, float beta1, float beta2,
                  StepFactors* factors);
void add_weighted(DeviceStream stream, const double* part, double weight, double* sum);
void round_sum(DeviceStream stream, const double* sum, float* rounded);
void gradient_factor(DeviceStream stream, const float* squares, double limit, StepState* state);
void count_step(DeviceStream stream, StepState* state);
void take_finite(DeviceStream stream, const float* overflow, StepState* state);
void adjust_loss_scale(DeviceStream stream, const LossScale& how, StepState* state);
void scale_loss(DeviceStream stream, const double* loss, const StepState* state, double* scaled);
/// So that the norm, whose square is given, is at most `limit`.
void clip_to(DeviceStream stream, const double* squares, double limit, std::span<float> x);

// optimizers.hpp; factors on the device take the place of those given here, and a step that
// overflowed then changes nothing
void sgd_step(DeviceStream stream, const Sgd& sgd, const Weights& weights,
              const StepFactors* factors = nullptr);
void momentum_step(DeviceStream stream, const Momentum& settings, const Weights& weights,
                   std::span<float> velocity, const StepFactors* factors = nullptr);
void adam_step(DeviceStream stream, const Adam& adam, const Weights& weights, Moments moments,
               std::uint64_t number, const StepFactors* factors = nullptr);

// gradient_norm.hpp and layerwise.hpp; scratch has norm_scratch_numbers(number of weights)
using NormScratch = std::span<double>;
std::size_t norm_scratch_numbers(std::size_t numbers);
void sum_of_squares(DeviceStream stream, std::span<const float> x, NormScratch scratch,
                    double* result);
void lars_squares(DeviceStream stream, const Weights& weights, NormScratch scratch,
                  LayerSquares* squares, const StepFactors* factors = nullptr);
void lars_ratio(DeviceStream stream, const Lars& lars, const LayerSquares* squares, float* ratio);
void lars_step(DeviceStream stream, const Lars& lars, const Weights& weights,
               std::span<float> velocity, const float* ratio, const StepFactors* factors = nullptr);
void lamb_update(DeviceStream stream, const Lamb& lamb, const Weights& weights, Moments moments,
                 std::uint64_t number, std::span<float> update, NormScratch scratch,
                 LayerSquares* squares);
/// Pass 1 without the squares.
void lamb_update(DeviceStream stream, const Lamb& lamb, const Weights& weights, Moments moments,
                 std::uint64_t number, std::span<float> update, const StepFactors* factors);
void lamb_ratio(DeviceStream stream, const LayerSquares* squares, float* ratio);
void lamb_apply(DeviceStream stream, const Lamb& lamb, const Weights& weights,
                std::span<const float> update, const float* ratio,
                const StepFactors* factors = nullptr);

/// Keeps one thread of the device busy for so many of its clock cycles.
void spin(DeviceStream stream, std::int64_t cycles);

}  // namespace rehearse
