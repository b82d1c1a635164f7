// The second half of a block: an MLP split by columns, then by rows; or experts, each so split.
#include <algorithm>

#include "strategies/transformer_pieces.hpp"

namespace rehearse {

namespace {

Product up(const RankShare& r) {
  return {"mlp.up", r.tokens, r.model.hidden, r.ups * r.ffn, r.model.mlp_bias};
}

Product down(const RankShare& r) { return {"mlp.down", r.tokens, r.ffn, r.model.hidden}; }

// Tokens meet `experts_per_token` experts each, spread evenly.
std::int64_t routed(const RankShare& r) { return r.tokens * r.model.experts_per_token; }

// The longest share of an expert: a grouped product does as many tiles.
std::int64_t per_expert(const RankShare& r) {
  return (routed(r) + r.model.experts - 1) / r.model.experts;
}

Product expert_up(const RankShare& r) {
  return {"experts.up",  per_expert(r),    r.model.hidden,
          r.ups * r.ffn, r.model.mlp_bias, r.model.experts};
}

Product expert_down(const RankShare& r) {
  return {"experts.down", per_expert(r), r.ffn, r.model.hidden, r.model.mlp_bias, r.model.experts};
}

Product router(const RankShare& r) {
  return {.name = "router",
          .tokens = r.outside,
          .inputs = r.model.hidden,
          .outputs = r.model.experts,
          .wide = true};
}

// GELU with its bias: one number in, one out. SwiGLU: two in, one out.
void activation(const RankShare& r, PieceWriter& w, std::string_view where, std::int64_t tokens) {
  const std::int64_t numbers = tokens * r.ffn;
  w.sweep(std::string{where} + (r.model.gated ? ".swiglu" : ".gelu"), (r.ups + 1) * numbers,
          12.0 * static_cast<double>(numbers));
  w.leaves(numbers, Elementwise::whole, true);
}

// Reads the inputs and the gradient, writes the inputs' gradients.
void activation_grad(const RankShare& r, PieceWriter& w, std::string_view where,
                     std::int64_t tokens) {
  const std::int64_t numbers = tokens * r.ffn;
  w.sweep(std::string{where} + (r.model.gated ? ".swiglu.grad" : ".gelu.grad"),
          (2 * r.ups + 1) * numbers, 16.0 * static_cast<double>(numbers));
  w.leaves(r.ups * numbers, Elementwise::whole, true);
}

// Copies tokens between their own order and that of experts: `more` numbers beside the routed.
void move_tokens(const RankShare& r, PieceWriter& w, std::string name, std::int64_t tokens) {
  const std::int64_t numbers = (tokens + routed(r)) * r.model.hidden;
  w.sweep(std::move(name), numbers, static_cast<double>(routed(r) * r.model.hidden));
}

}  // namespace

void mlp_forward(const RankShare& r, PieceWriter& w) {
  if (!r.model.norm_after) norm_forward(r, w, "mlp.norm");
  w.column_forward(up(r));
  activation(r, w, "mlp", r.tokens);
  w.row_forward(down(r));
  residual_forward(r, w, "mlp.residual", r.model.mlp_bias);
  if (r.model.norm_after) norm_forward(r, w, "mlp.norm");
}

void mlp_backward(const RankShare& r, PieceWriter& w) {
  if (r.model.norm_after) norm_backward(r, w, "mlp.norm");
  residual_backward(r, w, "mlp.residual", r.model.mlp_bias);
  w.row_backward(down(r));
  activation_grad(r, w, "mlp", r.tokens);
  w.column_backward(up(r));
  if (!r.model.norm_after) norm_backward(r, w, "mlp.norm");
  join_gradients(r, w, "mlp.residual");
}

// Korthikanti et al. 2022, section 4.1: the input of up (2sbh), GELU's input and output (8sbh/t
// each), the mask of the dropout (sbh). A gate adds one more of the middle width.
Bytes mlp_kept(const RankShare& r) {
  const std::int64_t e = r.numbers.activation;
  return Bytes{r.outside * r.model.hidden * (e + (r.how.dropout ? 1 : 0)) +
               r.tokens * (r.ups + 1) * r.ffn * e};
}

// All experts are on this rank, each cut over the tensor ranks; expert parallelism would put an
// all-to-all in the place of permute and unpermute.
void expert_forward(const RankShare& r, PieceWriter& w) {
  norm_forward(r, w, "experts.norm");
  w.forward(router(r));
  w.sweep("router.top_k", 2 * r.outside * r.model.experts,
          8.0 * static_cast<double>(r.outside * r.model.experts));
  w.enter("experts", r.tokens, r.model.hidden);
  move_tokens(r, w, "experts.permute", r.tokens);
  w.forward(expert_up(r));
  activation(r, w, "experts", routed(r));
  w.forward(expert_down(r));
  move_tokens(r, w, "experts.unpermute", r.tokens);
  w.leave("experts", r.tokens, r.model.hidden);
  residual_forward(r, w, "experts.residual", false);
}

void expert_backward(const RankShare& r, PieceWriter& w) {
  residual_backward(r, w, "experts.residual", false);
  w.enter("experts.grad", r.tokens, r.model.hidden);
  // The weights of the mixture have gradients too: the experts' outputs are read again.
  move_tokens(r, w, "experts.unpermute.grad", r.tokens + routed(r));
  w.input_gradient(expert_down(r));
  w.weight_gradient(expert_down(r));
  activation_grad(r, w, "experts", routed(r));
  w.input_gradient(expert_up(r));
  w.weight_gradient(expert_up(r));
  move_tokens(r, w, "experts.permute.grad", r.tokens);
  w.leave("experts.grad", r.tokens, r.model.hidden);
  w.sweep("router.top_k.grad", 3 * r.outside * r.model.experts,
          8.0 * static_cast<double>(r.outside * r.model.experts));
  w.input_gradient(router(r));
  w.weight_gradient(router(r));
  norm_backward(r, w, "experts.norm");
  join_gradients(r, w, "experts.residual");
}

// The router's input and probabilities; tokens in the experts' order, what goes into the
// activation and comes out, the experts' outputs.
Bytes expert_kept(const RankShare& r) {
  const std::int64_t e = r.numbers.activation;
  const std::int64_t mask = r.how.dropout ? r.outside * r.model.hidden : 0;
  const std::int64_t router_kept = r.outside * (r.model.hidden + r.model.experts) * e;
  return Bytes{router_kept + mask + routed(r) * (2 * r.model.hidden + (r.ups + 1) * r.ffn) * e};
}

}  // namespace rehearse
