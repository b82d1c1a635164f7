// A transformer block: attention and MLP with the kernels around them, and what it keeps.
#include "strategies/layers/transformer_pieces.hpp"

#include <algorithm>

#include "sim/base/assert.hpp"

namespace rehearse {

RankShare::RankShare(const Workload& workload, const Sharding& sharding)
    : model{workload.transformer},
      how{sharding},
      numbers{sharding},
      queries{how.seq_length / how.context},
      keys{how.seq_length},
      tokens{how.micro_batch * queries},
      outside{how.sequence_parallel ? tokens / how.tensor : tokens},
      heads{model.heads / how.tensor},
      query_width{heads * model.head_size},
      // Fewer key-value heads than ranks: each is on several of them.
      kv_width{std::max<std::int64_t>(1, model.kv_heads / how.tensor) * model.head_size},
      ffn{model.ffn / how.tensor},
      vocabulary{padded_vocabulary(model.vocabulary, how.tensor) / how.tensor},
      ups{model.gated ? 2 : 1},
      experts{model.experts / how.expert} {
  ASSERT(heads * how.tensor == model.heads && ffn * how.tensor == model.ffn);
  ASSERT(queries * how.context == how.seq_length && tokens > 0 && outside > 0);
}

// Half of the square for a causal mask; a window w < s leaves w(s - w/2) of it. Context ranks
// share the triangle evenly (each has a piece from its begin and one from its end).
double RankShare::computed_pairs() const {
  const auto s = static_cast<double>(keys), q = static_cast<double>(queries);
  const double w = model.window > 0 ? std::min(s, static_cast<double>(model.window)) : s;
  const double seen = model.causal ? w * (s - w / 2) / s : w;  // keys of the average query
  return static_cast<double>(how.micro_batch * heads) * q * seen;
}

Bytes RankShare::stream() const { return Bytes{outside * model.hidden * numbers.activation}; }

void norm_forward(const RankShare& r, PieceWriter& w, std::string_view name) {
  const std::int64_t numbers = r.outside * r.model.hidden;
  w.sweep(std::string{name}, 2 * numbers + r.model.norm_parameters(),
          (r.model.norm == Norm::layer ? 8.0 : 5.0) * static_cast<double>(numbers));
  w.leaves(numbers, Elementwise::ends, true);
}

// The gradient of the weights is a sum over tokens, a kernel of its own.
void norm_backward(const RankShare& r, PieceWriter& w, std::string_view name) {
  const std::int64_t numbers = r.outside * r.model.hidden;
  w.sweep(std::string{name} + ".grad", 3 * numbers + r.model.norm_parameters(),
          12.0 * static_cast<double>(numbers));
  w.leaves(numbers, Elementwise::no, false);
  w.sweep(std::string{name} + ".wgrad", 2 * numbers, 4.0 * static_cast<double>(numbers),
          2 * r.model.norm_parameters() * r.numbers.gradient);
  w.of_weights();
}

void residual_forward(const RankShare& r, PieceWriter& w, std::string_view name, bool bias) {
  const std::int64_t numbers = r.outside * r.model.hidden;
  w.sweep(std::string{name}, 3 * numbers + (bias ? r.model.hidden : 0),
          (r.how.dropout ? 4.0 : 2.0) * static_cast<double>(numbers), r.how.dropout ? numbers : 0);
  w.leaves(numbers, Elementwise::whole, true);
}

void residual_backward(const RankShare& r, PieceWriter& w, std::string_view name, bool bias) {
  const std::int64_t numbers = r.outside * r.model.hidden;
  if (r.how.dropout) {
    w.sweep(std::string{name} + ".grad", 2 * numbers, static_cast<double>(numbers), numbers);
    w.leaves(numbers, Elementwise::whole, true);
  }
  if (!bias) return;
  w.sweep(std::string{name} + ".bias_grad", numbers, static_cast<double>(numbers),
          2 * r.model.hidden * r.numbers.gradient);
  w.of_weights();
}

void join_gradients(const RankShare& r, PieceWriter& w, std::string_view name) {
  const std::int64_t numbers = r.outside * r.model.hidden;
  w.sweep(std::string{name} + ".join", 3 * numbers, static_cast<double>(numbers));
  w.leaves(numbers, Elementwise::whole, true);
}

namespace {

// As this rank holds them: split weights by the number of ranks, norms and row biases whole.
std::int64_t mlp_here(const RankShare& r) {
  const Transformer& m = r.model;
  const std::int64_t mlp = (r.ups + 1) * m.hidden * r.ffn;
  return m.mlp_bias ? mlp + r.ups * r.ffn + m.hidden : mlp;
}

std::int64_t parameters_here(const RankShare& r) {
  const Transformer& m = r.model;
  const std::int64_t qkv = r.query_width + 2 * r.kv_width;
  std::int64_t attention = m.hidden * (qkv + r.query_width);
  if (m.qkv_bias) attention += qkv;
  if (m.out_bias) attention += m.hidden;
  const std::int64_t mlp =
      m.experts > 0 ? r.experts * mlp_here(r) + m.hidden * m.experts : mlp_here(r);
  return attention + mlp + 2 * m.norm_parameters();
}

std::int64_t whole_here(const RankShare& r) {
  const Transformer& m = r.model;
  std::int64_t count = 2 * m.norm_parameters() + (m.out_bias ? m.hidden : 0);
  if (m.mlp_bias) count += m.hidden;
  return count + m.hidden * m.experts;
}

// Three times the forward products (PaLM, appendix B), of all ranks; the whole square of attention,
// as Megatron counts it, though a causal kernel computes half.
Flops block_flops(const RankShare& r) {
  const Transformer& m = r.model;
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  const double tokens = real(r.how.micro_batch) * real(r.keys);
  double weights = real(m.hidden) * real(2 * m.query_width() + 2 * m.kv_width());
  const double mlp = real(r.ups + 1) * real(m.hidden) * real(m.ffn);
  weights += m.experts > 0 ? real(m.experts_per_token) * mlp + real(m.hidden * m.experts) : mlp;
  const std::int64_t seen = m.window > 0 ? std::min(m.window, r.keys) : r.keys;
  const double attention = 2 * real(m.query_width()) * real(seen);
  return Flops{3 * 2 * tokens * (weights + attention)};
}

}  // namespace

LayerPieces block_pieces(const RankShare& r) {
  LayerPieces pieces{.name = "block"};
  pieces.forward.reserve(24);
  pieces.backward.reserve(40);
  PieceWriter forward{r.how, pieces.forward}, backward{r.how, pieces.backward};
  const bool experts = r.model.experts > 0;
  attention_forward(r, forward);
  experts ? expert_forward(r, forward) : mlp_forward(r, forward);
  experts ? expert_backward(r, backward) : mlp_backward(r, backward);
  attention_backward(r, backward);

  pieces.parameters = parameters_here(r);
  if (experts && r.how.expert > 1) pieces.expert_parameters = r.experts * mlp_here(r);
  if (r.how.sequence_parallel) pieces.partial_parameters = whole_here(r);
  pieces.input = pieces.output = r.stream();
  // Both norms keep their inputs. Where norms come first, that of the first is the layer's own
  // input; where they come after (BERT), the layer's input is that of qkv.
  const Bytes mlp = experts ? expert_kept(r) : mlp_kept(r);
  const Bytes norms = r.model.norm_after ? 2 * r.stream() : r.stream();
  pieces.kept = {r.stream(), attention_kept(r, false), mlp, norms, Bytes{}};
  pieces.kept_selective = {r.stream(), attention_kept(r, true), mlp, norms, Bytes{}};
  pieces.model_flops = block_flops(r);
  return pieces;
}

}  // namespace rehearse
