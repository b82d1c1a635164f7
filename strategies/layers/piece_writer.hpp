// Writes kernels and exchanges with their FLOPs and HBM bytes, so that the files of layers read
// like the layers. Inputs, weights and outputs of a kernel cross the memory bus once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/layers/layer_pieces.hpp"
#include "strategies/layers/sharding.hpp"

namespace rehearse {

/// Bytes of the numbers a kernel meets. With fp8, products with weights read one byte per number
/// (the kernel before casts); everything else is kept and moved in 16 bits.
struct Numbers {
  explicit Numbers(const Sharding& how);
  Precision wide_math() const { return math == Precision::fp8 ? Precision::bf16 : math; }
  Precision math;           // of matrix products
  std::int64_t activation;  // and of weights between steps
  std::int64_t operand;     // of a matrix product
  std::int64_t gradient;    // of a weight, where it is accumulated
};

/// A product with weights: [tokens, inputs] × [inputs, outputs], widths as this rank holds them.
struct Product {
  std::string_view name;
  std::int64_t tokens = 0, inputs = 0, outputs = 0;
  bool bias = false;
  std::int64_t copies = 1;  // experts, each with its own tokens and weights
  bool wide = false;        // in 16 bits where others are in fp8: the LM head, a router
};

class PieceWriter {
 public:
  PieceWriter(const Sharding& how, std::vector<Piece>& pieces)
      : numbers_{how}, how_{how}, pieces_{pieces} {}

  const Numbers& numbers() const { return numbers_; }

  /// A matrix product without weights (of attention): in 16 bits where others are in fp8.
  void matmul(std::string name, Gemm gemm, bool recomputed = false);
  /// A kernel that reads and writes: `numbers` activations, `bytes` of other things (masks, fp32),
  /// and a few operations for each number.
  void sweep(std::string name, std::int64_t numbers, double flops, std::int64_t bytes = 0);
  void kernel(Piece piece) { pieces_.push_back(std::move(piece)); }
  void exchange(std::string name, CollectiveKind kind, std::int64_t bytes, std::uint8_t beside = 0,
                Dimension dimension = Dimension::tensor);
  /// The last piece leaves so many numbers for the next, element by element.
  void leaves(std::int64_t numbers, Elementwise how, bool is_kept);
  /// The last piece is work of weights, or is run again by selective recomputation.
  void of_weights() { pieces_.back().of_weights = true; }
  void recomputed() { pieces_.back().recomputed = true; }

  void forward(const Product& product);
  void input_gradient(const Product& product);
  void weight_gradient(const Product& product);  // and of the bias

  // A product split by columns or by rows, with the exchange that its split needs.
  void column_forward(const Product& product);
  void column_backward(const Product& product);
  void row_forward(const Product& product);
  void row_backward(const Product& product);

  /// Into a tensor-parallel region, and out of it: forward and backward. `width` numbers a token.
  void enter(std::string_view name, std::int64_t tokens, std::int64_t width);
  void leave(std::string_view name, std::int64_t tokens, std::int64_t width);

 private:
  std::int64_t whole(const Product& product, std::int64_t width) const {
    return product.tokens * width * numbers_.activation;
  }

  Numbers numbers_;
  const Sharding& how_;
  std::vector<Piece>& pieces_;
};

}  // namespace rehearse
