// The tensors of each kind of layer. Starting values are even draws from
// ±1/√inputs, as PyTorch's linear layers have them; norms begin near one,
// tables near zero.
#include "strategies/binding/parameters.hpp"

#include <cmath>

#include "kernels/math/philox.hpp"
#include "sim/base/assert.hpp"
#include "strategies/layers/transformer_pieces.hpp"

namespace rehearse {

namespace {

class TensorList {
 public:
  explicit TensorList(const Sharding& how) : ranks_{how.tensor} {}

  void add(ParameterTensor tensor) {
    if (tensor.padded_rows == 0) tensor.padded_rows = tensor.rows;
    const bool rows = tensor.cut == TensorCut::rows, columns = tensor.cut == TensorCut::columns;
    tensor.rows_here = rows ? tensor.padded_rows / ranks_ : tensor.padded_rows;
    tensor.columns_here = columns ? tensor.columns / ranks_ : tensor.columns;
    ASSERT(!rows || tensor.rows_here * ranks_ == tensor.padded_rows);
    ASSERT(!columns || tensor.columns_here * ranks_ == tensor.columns);
    tensors_.push_back(std::move(tensor));
  }

  void weight(std::string name, std::int64_t inputs, std::int64_t outputs, TensorCut cut) {
    add({.name = std::move(name),
         .rows = inputs,
         .columns = outputs,
         .cut = cut,
         .spread = 1 / std::sqrt(static_cast<double>(inputs))});
  }
  void bias(std::string name, std::int64_t outputs, TensorCut cut) {
    add({.name = std::move(name), .columns = outputs, .cut = cut, .spread = 0.1});
  }
  void norm(const std::string& name, const Transformer& model) {
    add({.name = name + ".weight", .columns = model.hidden, .mean = 1, .spread = 0.1});
    if (model.norm == Norm::layer)
      add({.name = name + ".bias", .columns = model.hidden, .spread = 0.1});
  }
  void table(const Transformer& model) {
    add({.name = "table",
         .rows = model.vocabulary,
         .columns = model.hidden,
         .cut = TensorCut::rows,
         .spread = 0.5 / std::sqrt(static_cast<double>(model.hidden)),
         .padded_rows = padded_vocabulary(model.vocabulary, ranks_)});
  }

  std::vector<ParameterTensor> take() { return std::move(tensors_); }

 private:
  std::int64_t ranks_;
  std::vector<ParameterTensor> tensors_;
};

void add_block(const Transformer& m, TensorList& list) {
  using enum TensorCut;
  const std::int64_t q = m.query_width(), kv = m.kv_width();
  list.norm("attention.norm", m);
  list.weight("attention.query", m.hidden, q, columns);
  list.weight("attention.key", m.hidden, kv, columns);
  list.weight("attention.value", m.hidden, kv, columns);
  if (m.qkv_bias) {
    list.bias("attention.query.bias", q, columns);
    list.bias("attention.key.bias", kv, columns);
    list.bias("attention.value.bias", kv, columns);
  }
  list.weight("attention.out", q, m.hidden, rows);
  if (m.out_bias) list.bias("attention.out.bias", m.hidden, whole);
  list.norm("mlp.norm", m);
  if (m.gated) list.weight("mlp.gate", m.hidden, m.ffn, columns);
  list.weight("mlp.up", m.hidden, m.ffn, columns);
  if (m.mlp_bias && m.gated) list.bias("mlp.gate.bias", m.ffn, columns);
  if (m.mlp_bias) list.bias("mlp.up.bias", m.ffn, columns);
  list.weight("mlp.down", m.ffn, m.hidden, rows);
  if (m.mlp_bias) list.bias("mlp.down.bias", m.hidden, whole);
}

}  // namespace

std::vector<ParameterTensor> tensors_of(const Workload& workload, std::size_t layer,
                                        const Sharding& how, bool has_table) {
  TensorList list{how};
  const Transformer& m = workload.transformer;
  switch (workload.layers[layer].kind) {
    case LayerKind::dense: {
      const auto& dense = std::get<Dense>(workload.layers[layer].shape);
      list.weight("weight", dense.inputs, dense.outputs,
                  dense.row ? TensorCut::rows : TensorCut::columns);
      if (dense.bias)
        list.bias("bias", dense.outputs, dense.row ? TensorCut::whole : TensorCut::columns);
      break;
    }
    case LayerKind::embedding:
      list.table(m);
      if (m.learned_positions)
        list.add({.name = "positions", .rows = m.positions, .columns = m.hidden, .spread = 0.1});
      break;
    case LayerKind::block:
      add_block(m, list);
      break;
    case LayerKind::final_norm:
      list.norm("norm", m);
      break;
    case LayerKind::head:
      if (!m.tied || has_table) list.table(m);
      break;
    case LayerKind::images:
      ASSERT(false);  // refused before: there are no kernels for them
  }
  return list.take();
}

std::int64_t whole_index(const ParameterTensor& tensor, std::size_t place, std::int64_t i) {
  const auto t = static_cast<std::int64_t>(place);
  std::int64_t row = i / tensor.columns_here, column = i % tensor.columns_here;
  if (tensor.cut == TensorCut::rows) row += t * tensor.rows_here;
  if (tensor.cut == TensorCut::columns) column += t * tensor.columns_here;
  return row < tensor.rows ? row * tensor.columns + column : -1;
}

void initialize(const ParameterTensor& tensor, std::uint64_t seed, std::uint64_t stream,
                std::size_t place, std::span<float> values) {
  ASSERT(values.size() == static_cast<std::size_t>(tensor.size()));
  const RandomWords words{seed, stream};
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::int64_t at = whole_index(tensor, place, i);
    float& value = values[static_cast<std::size_t>(i)];
    value = 0;
    if (at < 0) continue;
    const double even =
        (static_cast<double>(words.word(static_cast<std::uint64_t>(at))) + 0.5) * 0x1p-31 - 1;
    value = static_cast<float>(tensor.mean + tensor.spread * even);
  }
}

}  // namespace rehearse
