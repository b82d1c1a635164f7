// The second half of a block: an MLP split by columns, then by rows; or experts, each so split.
#include <algorithm>
#include <cmath>

#include "strategies/layers/transformer_pieces.hpp"

namespace rehearse {

namespace {

Product up(const RankShare& r) {
  return {"mlp.up", r.tokens, r.model.hidden, r.ups * r.ffn, r.model.mlp_bias};
}

Product down(const RankShare& r) { return {"mlp.down", r.tokens, r.ffn, r.model.hidden}; }

// Rows for the experts of a rank, when each of the expert ranks has so many tokens and each token
// meets `experts_per_token` of them: an even share for everybody, or that of the busiest rank, for
// which the others wait; or the places that a capacity reserves, filled or not (Lepikhin et al.
// 2021, GShard).
std::int64_t rows_of(const RankShare& r, std::int64_t tokens) {
  const std::int64_t routed = tokens * r.model.experts_per_token;
  const double factor = r.how.expert_capacity > 0 ? r.how.expert_capacity : r.how.expert_imbalance;
  return factor == 1 ? routed
                     : static_cast<std::int64_t>(std::ceil(static_cast<double>(routed) * factor));
}
std::int64_t rows(const RankShare& r) { return rows_of(r, r.tokens); }

// The longest share of an expert: a grouped product does as many tiles.
std::int64_t per_expert(const RankShare& r) { return (rows(r) + r.experts - 1) / r.experts; }

Product expert_up(const RankShare& r) {
  return {"experts.up", per_expert(r), r.model.hidden, r.ups * r.ffn, r.model.mlp_bias, r.experts};
}

Product expert_down(const RankShare& r) {
  return {"experts.down", per_expert(r), r.ffn, r.model.hidden, r.model.mlp_bias, r.experts};
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

// Copies tokens between their own order and that of experts: `tokens` in the one, `there` in the
// other.
void move_tokens(const RankShare& r, PieceWriter& w, std::string name, std::int64_t tokens,
                 std::int64_t there) {
  const std::int64_t numbers = (tokens + there) * r.model.hidden;
  w.sweep(std::move(name), numbers, static_cast<double>(there * r.model.hidden));
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

namespace {

void route(const RankShare& r, PieceWriter& w) {
  norm_forward(r, w, "experts.norm");
  w.forward(router(r));
  w.sweep("router.top_k", 2 * r.outside * r.model.experts,
          8.0 * static_cast<double>(r.outside * r.model.experts));
}

void route_grad(const RankShare& r, PieceWriter& w) {
  w.sweep("router.top_k.grad", 3 * r.outside * r.model.experts,
          8.0 * static_cast<double>(r.outside * r.model.experts));
  w.input_gradient(router(r));
  w.weight_gradient(router(r));
  norm_backward(r, w, "experts.norm");
  join_gradients(r, w, "experts.residual");
}

void compute_forward(const RankShare& r, PieceWriter& w) {
  w.forward(expert_up(r));
  activation(r, w, "experts", rows(r));
  w.forward(expert_down(r));
}

void compute_backward(const RankShare& r, PieceWriter& w) {
  w.input_gradient(expert_down(r));
  w.weight_gradient(expert_down(r));
  activation_grad(r, w, "experts", rows(r));
  w.input_gradient(expert_up(r));
  w.weight_gradient(expert_up(r));
}

// Every rank sends each other one the tokens for its experts: 1/ep of its rows, when they are even.
void all_to_all(const RankShare& r, PieceWriter& w, std::string name) {
  w.exchange(std::move(name), CollectiveKind::all_to_all,
             rows_of(r, r.outside) * r.model.hidden * r.numbers.activation, 0, Dimension::expert);
}

// Megatron's all-to-all dispatcher: tokens are put in the order of ranks, sent, gathered over the
// tensor ranks, and put in the order of the experts here.
void spread_forward(const RankShare& r, PieceWriter& w) {
  const std::int64_t sent = rows_of(r, r.outside);
  move_tokens(r, w, "experts.permute", r.outside, sent);
  all_to_all(r, w, "experts.dispatch");
  w.enter("experts", rows(r), r.model.hidden);
  move_tokens(r, w, "experts.sort", rows(r), rows(r));
  compute_forward(r, w);
  move_tokens(r, w, "experts.unsort", rows(r), rows(r));
  w.leave("experts", rows(r), r.model.hidden);
  all_to_all(r, w, "experts.combine");
  move_tokens(r, w, "experts.unpermute", r.outside, sent);
}

void spread_backward(const RankShare& r, PieceWriter& w) {
  const std::int64_t sent = rows_of(r, r.outside);
  move_tokens(r, w, "experts.unpermute.grad", r.outside + sent, sent);
  all_to_all(r, w, "experts.combine.grad");
  w.enter("experts.grad", rows(r), r.model.hidden);
  move_tokens(r, w, "experts.unsort.grad", rows(r), rows(r));
  compute_backward(r, w);
  move_tokens(r, w, "experts.sort.grad", rows(r), rows(r));
  w.leave("experts.grad", rows(r), r.model.hidden);
  all_to_all(r, w, "experts.dispatch.grad");
  move_tokens(r, w, "experts.permute.grad", r.outside, sent);
}

}  // namespace

// Without expert ranks all experts are on this one, each cut over the tensor ranks.
void expert_forward(const RankShare& r, PieceWriter& w) {
  route(r, w);
  if (r.how.expert > 1) {
    spread_forward(r, w);
  } else {
    w.enter("experts", r.tokens, r.model.hidden);
    move_tokens(r, w, "experts.permute", r.tokens, rows(r));
    compute_forward(r, w);
    move_tokens(r, w, "experts.unpermute", r.tokens, rows(r));
    w.leave("experts", r.tokens, r.model.hidden);
  }
  residual_forward(r, w, "experts.residual", false);
}

// The weights of the mixture have gradients too: the experts' outputs are read again.
void expert_backward(const RankShare& r, PieceWriter& w) {
  residual_backward(r, w, "experts.residual", false);
  if (r.how.expert > 1) {
    spread_backward(r, w);
  } else {
    w.enter("experts.grad", r.tokens, r.model.hidden);
    move_tokens(r, w, "experts.unpermute.grad", r.tokens + rows(r), rows(r));
    compute_backward(r, w);
    move_tokens(r, w, "experts.permute.grad", r.tokens, rows(r));
    w.leave("experts.grad", r.tokens, r.model.hidden);
  }
  route_grad(r, w);
}

// The router's input and probabilities; tokens in the experts' order, what goes into the
// activation and comes out, the experts' outputs.
Bytes expert_kept(const RankShare& r) {
  const std::int64_t e = r.numbers.activation;
  const std::int64_t mask = r.how.dropout ? r.outside * r.model.hidden : 0;
  const std::int64_t router_kept = r.outside * (r.model.hidden + r.model.experts) * e;
  return Bytes{router_kept + mask + rows(r) * (2 * r.model.hidden + (r.ups + 1) * r.ffn) * e};
}

}  // namespace rehearse
