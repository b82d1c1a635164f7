// A layer of an MLP, split by columns and by rows in turn: between the two of a pair each rank has
// its part of the hidden numbers and nothing is exchanged.
#include "strategies/layers/plain_pieces.hpp"

namespace rehearse {

namespace {

Product product_of(const Dense& dense, const Sharding& how) {
  return {.name = "fc",
          .tokens = how.micro_batch,
          .inputs = dense.row ? dense.inputs / how.tensor : dense.inputs,
          .outputs = dense.row ? dense.outputs : dense.outputs / how.tensor,
          .bias = dense.bias};
}

void write_forward(const Dense& dense, const Sharding& how, PieceWriter& w) {
  const Product product = product_of(dense, how);
  w.forward(product);
  const std::int64_t whole = how.micro_batch * dense.outputs;
  if (how.tensor > 1 && dense.row)
    w.exchange("fc.all_reduce", CollectiveKind::all_reduce, whole * w.numbers().activation);
  if (how.tensor > 1 && !dense.row && dense.last)
    w.exchange("fc.all_gather", CollectiveKind::all_gather, whole * w.numbers().activation);
  const std::int64_t here = how.micro_batch * product.outputs;
  if (dense.last)
    w.sweep("loss", whole, 5.0 * static_cast<double>(whole), 4 * whole);
  else {
    w.sweep("relu", 2 * here, static_cast<double>(here));
    w.leaves(here, Elementwise::whole, true);
  }
}

void write_backward(const Dense& dense, const Sharding& how, PieceWriter& w) {
  const Product product = product_of(dense, how);
  const std::int64_t whole = how.micro_batch * dense.outputs;
  const std::int64_t here = how.micro_batch * product.outputs;
  if (dense.last)
    w.sweep("loss.grad", whole, 2.0 * static_cast<double>(whole), 4 * whole);
  else {
    w.sweep("relu.grad", 3 * here, static_cast<double>(here));
    w.leaves(here, Elementwise::whole, true);
  }
  if (!dense.first) w.input_gradient(product);
  if (!dense.first && !dense.row && how.tensor > 1)
    w.exchange("fc.grad.all_reduce", CollectiveKind::all_reduce,
               how.micro_batch * dense.inputs * w.numbers().activation, dense.bias ? 2 : 1);
  w.weight_gradient(product);
}

}  // namespace

LayerPieces dense_pieces(const Dense& dense, const Sharding& how) {
  LayerPieces pieces{.name = "layer", .recomputes = !dense.last};
  PieceWriter forward{how, pieces.forward}, backward{how, pieces.backward};
  write_forward(dense, how, forward);
  write_backward(dense, how, backward);
  const Product product = product_of(dense, how);
  const std::int64_t e = forward.numbers().activation;
  pieces.parameters = (product.inputs + (dense.bias ? 1 : 0)) * product.outputs;
  pieces.input = Bytes{how.micro_batch * product.inputs * e};
  pieces.output = Bytes{dense.last ? 0 : how.micro_batch * product.outputs * e};
  // ReLU works in place: what it leaves is the next layer's input.
  const Bytes loss{dense.last ? 4 * how.micro_batch * dense.outputs : 0};
  pieces.kept = pieces.kept_selective = {pieces.input, Bytes{}, Bytes{}, Bytes{}, loss};
  pieces.model_flops =
      Flops{6.0 * static_cast<double>(how.micro_batch) * static_cast<double>(dense.inputs) *
            static_cast<double>(dense.outputs)};
  return pieces;
}

}  // namespace rehearse
