// FLOPs and bytes of the kernels that every kind of layer has.
#include "strategies/layers/piece_writer.hpp"

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

std::string joined(std::string_view name, std::string_view suffix) {
  std::string whole;
  whole.reserve(name.size() + suffix.size());
  return whole.append(name).append(suffix);
}

Flops flops_of(const Gemm& gemm) {
  return Flops{2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
               static_cast<double>(gemm.k) * static_cast<double>(gemm.batch)};
}

Compute product(const Gemm& gemm, const Numbers& numbers, std::int64_t written, bool wide) {
  ASSERT(gemm.m > 0 && gemm.n > 0 && gemm.k > 0 && gemm.batch > 0);
  const std::int64_t operand = wide ? numbers.activation : numbers.operand;
  const std::int64_t read = (gemm.m * gemm.k + gemm.k * gemm.n) * operand;
  return {.flops = flops_of(gemm),
          .traffic = Bytes{gemm.batch * (read + gemm.m * gemm.n * written)},
          .gemm = gemm,
          .math = wide ? numbers.wide_math() : numbers.math};
}

}  // namespace

Numbers::Numbers(const Sharding& how)
    : math{how.precision},
      activation{how.precision == Precision::fp8 ? 2 : bytes_of(how.precision).count()},
      operand{bytes_of(how.precision).count()},
      gradient{how.gradients_in_fp32 ? 4 : activation} {}

void PieceWriter::matmul(std::string name, Gemm gemm, bool recomputed) {
  pieces_.push_back({.name = std::move(name),
                     .work = product(gemm, numbers_, numbers_.activation, true),
                     .recomputed = recomputed});
}

void PieceWriter::sweep(std::string name, std::int64_t numbers, double flops, std::int64_t bytes) {
  const Compute work{.flops = Flops{flops},
                     .traffic = Bytes{numbers * numbers_.activation + bytes},
                     .math = Precision::fp32};
  pieces_.push_back({.name = std::move(name), .work = work});
}

void PieceWriter::leaves(std::int64_t numbers, Elementwise how, bool is_kept) {
  Piece& last = pieces_.back();
  last.elementwise = how;
  last.result = Bytes{numbers * numbers_.activation};
  last.result_is_kept = is_kept;
}

void PieceWriter::exchange(std::string name, CollectiveKind kind, std::int64_t bytes,
                           std::uint8_t beside, Dimension dimension) {
  pieces_.push_back(
      {.name = std::move(name), .work = Exchange{dimension, kind, Bytes{bytes}}, .beside = beside});
}

void PieceWriter::forward(const Product& p) {
  const Gemm gemm{p.tokens, p.outputs, p.inputs, p.copies};
  pieces_.push_back({.name = std::string{p.name},
                     .work = product(gemm, numbers_, numbers_.activation, p.wide),
                     .weights = p.copies * p.inputs * p.outputs});
}

void PieceWriter::input_gradient(const Product& p) {
  const Gemm gemm{p.tokens, p.inputs, p.outputs, p.copies};
  pieces_.push_back({.name = joined(p.name, ".dgrad"),
                     .work = product(gemm, numbers_, numbers_.activation, p.wide),
                     .weights = p.copies * p.inputs * p.outputs});
}

// Accumulated in place over micro-batches: the gradient is read and written.
void PieceWriter::weight_gradient(const Product& p) {
  const Gemm gemm{p.inputs, p.outputs, p.tokens, p.copies};
  pieces_.push_back({.name = joined(p.name, ".wgrad"),
                     .work = product(gemm, numbers_, 2 * numbers_.gradient, p.wide),
                     .of_weights = true,
                     .weights = p.copies * p.inputs * p.outputs});
  if (!p.bias) return;
  const std::int64_t numbers = p.copies * p.tokens * p.outputs;
  sweep(joined(p.name, ".bias_grad"), numbers, static_cast<double>(numbers),
        2 * p.copies * p.outputs * numbers_.gradient);
  of_weights();
}

void PieceWriter::enter(std::string_view name, std::int64_t tokens, std::int64_t width) {
  if (how_.tensor > 1 && how_.sequence_parallel)
    exchange(joined(name, ".all_gather"), CollectiveKind::all_gather,
             tokens * width * numbers_.activation);
}

void PieceWriter::leave(std::string_view name, std::int64_t tokens, std::int64_t width) {
  if (how_.tensor == 1) return;
  const std::int64_t bytes = tokens * width * numbers_.activation;
  if (how_.sequence_parallel)
    exchange(joined(name, ".reduce_scatter"), CollectiveKind::reduce_scatter, bytes);
  else
    exchange(joined(name, ".all_reduce"), CollectiveKind::all_reduce, bytes);
}

void PieceWriter::column_forward(const Product& p) {
  enter(p.name, p.tokens, p.inputs);
  forward(p);
}

// Megatron's order (LinearWithGradAccumulationAndAsyncCommunication): under sequence parallelism
// the input is gathered again beside the first product, and the sum of the input's gradient goes
// out beside the second.
void PieceWriter::column_backward(const Product& p) {
  const bool split = how_.tensor > 1;
  if (split && how_.sequence_parallel) {
    exchange(joined(p.name, ".gather_again"), CollectiveKind::all_gather, whole(p, p.inputs), 1);
    of_weights();
  }
  input_gradient(p);
  const std::uint8_t beside = p.bias ? 2 : 1;
  if (split && how_.sequence_parallel)
    exchange(joined(p.name, ".reduce_scatter"), CollectiveKind::reduce_scatter, whole(p, p.inputs),
             beside);
  else if (split)
    exchange(joined(p.name, ".all_reduce"), CollectiveKind::all_reduce, whole(p, p.inputs), beside);
  weight_gradient(p);
}

void PieceWriter::row_forward(const Product& p) {
  forward(p);
  leave(p.name, p.tokens, p.outputs);
}

void PieceWriter::row_backward(const Product& p) {
  enter(p.name, p.tokens, p.outputs);
  input_gradient(p);
  weight_gradient(p);
}

}  // namespace rehearse
