// A layer of an MLP. Over tensor ranks layers are cut by columns and by rows in
// turn: a column layer adds its part of the bias with its product, a row layer
// behind the sum over ranks.
//
//   forward   stream(0) ─fc─▶ [all-reduce] ─bias, relu─▶ stream(1) last: ─▶
//   logits ─▶ loss backward  stream_gradient(1) ─relu.grad─▶ out.gradient ─▶
//   stream_gradient(0), weights
#include "sim/base/assert.hpp"
#include "strategies/binding/site.hpp"

namespace rehearse {

namespace {

struct DenseNumbers {
  explicit DenseNumbers(PieceSite& site)
      : dense{std::get<Dense>(site.layer().shape)},
        rows{site.how().micro_batch},
        inputs{dense.row ? dense.inputs / site.how().tensor : dense.inputs},
        outputs{dense.row ? dense.outputs : dense.outputs / site.how().tensor},
        parts{dense.last && !dense.row ? site.how().tensor : 1} {}

  const Dense& dense;
  std::int64_t rows, inputs, outputs;  // here
  std::int64_t parts;                  // of logits that are gathered: one behind the other
  PieceSite::ProductShape shape() const { return {rows, inputs, outputs}; }
};

// Of a last layer that is cut by columns this is the gathered whole.
Slice out(PieceSite& site, const DenseNumbers& d) {
  return site.tensor("out", d.rows * d.outputs * d.parts);
}
Slice out_here(PieceSite& site, const DenseNumbers& d) {
  return Cut{out(site, d),
             static_cast<std::size_t>(d.parts)}[d.parts > 1 ? site.tensor_place() : 0];
}
Slice out_gradient(PieceSite& site, const DenseNumbers& d) {
  return site.tensor("out.gradient", d.rows * d.outputs);
}
Slice labels(PieceSite& site, const DenseNumbers& d) { return site.fed("labels", d.rows); }

void add_bias(PieceSite& site, const DenseNumbers& d, const Slice& y) {
  if (d.dense.bias)
    site.calls.add(Kernel::add_bias, {y, site.parameter("bias"), y}, {d.rows, d.outputs});
}

void loss(PieceSite& site, const DenseNumbers& d) {
  if (d.dense.row) add_bias(site, d, out(site, d));
  site.calls.add(Kernel::class_loss, {out(site, d), labels(site, d), site.bytes("loss", 8)},
                 {d.rows, d.dense.outputs, d.parts});
}

void loss_gradient(PieceSite& site, const DenseNumbers& d) {
  const std::int64_t first =
      d.parts > 1 ? static_cast<std::int64_t>(site.tensor_place()) * d.outputs : 0;
  site.calls.add(Kernel::class_loss_backward,
                 {out(site, d), labels(site, d), site.loss_state(), out_gradient(site, d)},
                 {d.rows, d.dense.outputs, d.parts, first, d.outputs}, {site.sample_weight()});
}

}  // namespace

void bind_dense(PieceSite& site, std::string_view piece) {
  const DenseNumbers d{site};
  const std::int64_t numbers = d.rows * d.outputs;
  if (piece == "fc.weight_cast") {
    site.cast_weight("weight");
  } else if (piece == "fc.wgrad.cast_add") {
    site.add_gradient("weight");
  } else if (piece == "fc") {
    site.forward(d.shape(), site.stream(0, d.rows * d.inputs), site.factor("weight"),
                 out_here(site, d));
    if (!d.dense.row) add_bias(site, d, out_here(site, d));
  } else if (piece == "relu") {
    if (d.dense.row) add_bias(site, d, out(site, d));
    site.calls.add(Kernel::relu, {out(site, d), site.stream(1, numbers)});
  } else if (piece == "relu.grad") {
    site.calls.add(Kernel::relu_backward, {site.stream_gradient(1, numbers),
                                           site.stream(1, numbers), out_gradient(site, d)});
  } else if (piece == "loss") {
    loss(site, d);
  } else if (piece == "loss.scale") {
    site.scale_loss();
  } else if (piece == "loss.grad") {
    loss_gradient(site, d);
  } else if (piece == "fc.dgrad") {
    site.input_gradient(d.shape(), out_gradient(site, d), site.factor("weight"),
                        site.stream_gradient(0, d.rows * d.inputs), false);
  } else if (piece == "fc.wgrad") {
    site.weight_gradient(d.shape(), site.stream(0, d.rows * d.inputs), out_gradient(site, d),
                         "weight");
  } else {
    ASSERT(piece == "fc.bias_grad");
    site.calls.add(Kernel::add_column_sums, {out_gradient(site, d), site.gradient("bias")},
                   {d.rows, d.outputs});
  }
}

Slice dense_exchange(PieceSite& site, std::string_view piece) {
  const DenseNumbers d{site};
  if (piece == "fc.grad.all_reduce") return site.stream_gradient(0, d.rows * d.inputs);
  ASSERT(piece == "fc.all_reduce" || piece == "fc.all_gather");
  return out(site, d);
}

}  // namespace rehearse
