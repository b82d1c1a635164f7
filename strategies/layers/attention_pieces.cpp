// Attention: the products with weights split by columns and rows, so that each rank has whole
// heads. Plain attention makes the s×s matrices; flash attention is one kernel that does not (Dao
// et al. 2022), and computes the scores again in its backward pass.
#include "strategies/layers/transformer_pieces.hpp"

namespace rehearse {

namespace {

Product qkv(const RankShare& r) {
  return {"attention.qkv", r.tokens, r.model.hidden, r.query_width + 2 * r.kv_width,
          r.model.qkv_bias};
}

// Its bias is added with the residual, behind the exchange.
Product out(const RankShare& r) {
  return {"attention.out", r.tokens, r.query_width, r.model.hidden};
}

std::int64_t scores(const RankShare& r) { return r.how.micro_batch * r.heads * r.queries * r.keys; }

// K and V of the whole sequence on this rank's heads.
std::int64_t gathered_kv(const RankShare& r) {
  return 2 * r.how.micro_batch * r.keys * r.kv_width * r.numbers.activation;
}

void plain_forward(const RankShare& r, PieceWriter& w) {
  const std::int64_t batch = r.how.micro_batch * r.heads;
  const auto pairs = static_cast<double>(scores(r));
  w.matmul("attention.scores", {r.queries, r.keys, r.model.head_size, batch}, true);
  w.sweep("attention.softmax", 2 * scores(r), 8 * pairs);  // with scale and mask
  w.leaves(scores(r), Elementwise::ends, true);
  w.recomputed();
  if (r.how.dropout) {
    w.sweep("attention.dropout", 2 * scores(r), 2 * pairs, scores(r));
    w.leaves(scores(r), Elementwise::whole, true);
    w.recomputed();
  }
  w.matmul("attention.context", {r.queries, r.model.head_size, r.keys, batch}, true);
}

void plain_backward(const RankShare& r, PieceWriter& w) {
  const std::int64_t batch = r.how.micro_batch * r.heads, size = r.model.head_size;
  const auto pairs = static_cast<double>(scores(r));
  w.matmul("attention.context.dgrad_scores", {r.queries, r.keys, size, batch});
  w.matmul("attention.context.dgrad_values", {r.keys, size, r.queries, batch});
  if (r.how.dropout) w.sweep("attention.dropout.grad", 2 * scores(r), pairs, scores(r));
  w.sweep("attention.softmax.grad", 3 * scores(r), 5 * pairs);
  w.leaves(scores(r), Elementwise::ends, false);
  w.matmul("attention.scores.dgrad_queries", {r.queries, size, r.keys, batch});
  w.matmul("attention.scores.dgrad_keys", {r.keys, size, r.queries, batch});
}

/// What one kernel of flash attention meets: a rank's queries, and keys and values.
struct Flash {
  std::int64_t keys = 0;  // of a sequence
  double pairs = 0;       // (query, key), over all heads here
};

// Two products forward. Backward five: the scores once more, and the gradients of scores, V, Q, K;
// the gradient of Q is accumulated in fp32. No Gemm: its tiles are those of the fused kernel.
Piece flash(const RankShare& r, const Flash& what, bool backward) {
  const std::int64_t q = r.tokens * r.query_width;
  const std::int64_t kv = r.how.micro_batch * what.keys * r.kv_width;
  const std::int64_t sums = 4 * r.tokens * r.heads;  // log of the sum of exponentials, fp32
  const double product = 2 * what.pairs * static_cast<double>(r.model.head_size);
  const std::int64_t e = r.numbers.activation;
  Compute work{.flops = Flops{2 * product}, .math = r.numbers.wide_math()};
  work.traffic = Bytes{(2 * q + 2 * kv) * e + sums};  // Q and the output, K and V
  if (backward) {
    work.flops = Flops{5 * product};
    work.traffic = Bytes{(4 * q + 4 * kv) * e + 2 * q * 4 + 2 * sums};
  }
  return {.name = backward ? "attention.flash.grad" : "attention.flash",
          .work = work,
          .recomputed = !backward};
}

void rope(const RankShare& r, PieceWriter& w, std::string name) {
  if (r.model.learned_positions) return;
  const std::int64_t numbers = r.tokens * (r.query_width + r.kv_width);
  w.sweep(std::move(name), 2 * numbers, 3.0 * static_cast<double>(numbers));
  w.leaves(numbers, Elementwise::whole, true);
}

// Ring attention (Liu et al. 2023): each rank begins with its own keys and values, and while it
// computes with a block it sends it on and receives the next.
//
//   forward    kernel  [ block 0 ][ block 1 ] … [ block c-1 ]      c context ranks, c-1 hops
//              ring    [  kv 1   ][  kv 2   ] …
//   backward   kernel  [ block 0 ][ block 1 ] … [ block c-1 ]
//              ring    [  kv 1   ][ kv 2, d0 ] … [   d c-2   ][ d c-1 ]   gradients d go on with
//                                                                         their block, and home
// A rank has a piece from the sequence's begin and one from its end, so under a causal mask every
// block is half of its square and all ranks have equal work (zig-zag; Brandon et al. 2023).
Flash block_of(const RankShare& r) {
  return {r.queries, r.computed_pairs() / static_cast<double>(r.how.context)};
}

void hop(const RankShare& r, PieceWriter& w, std::string name, std::int64_t tensors,
         std::uint8_t beside) {
  w.exchange(std::move(name), CollectiveKind::send_recv,
             tensors * r.tokens * r.kv_width * r.numbers.activation, beside, Dimension::context);
}

// The parts of the output are joined by their sums of exponentials, in fp32.
void ring_forward(const RankShare& r, PieceWriter& w) {
  const std::int64_t output = r.tokens * r.query_width, sums = 4 * r.tokens * r.heads;
  for (std::int64_t step = 0; step < r.how.context; ++step) {
    if (step + 1 < r.how.context) {
      hop(r, w, "attention.ring_kv", 2, step > 0 ? 2 : 1);
      w.recomputed();
    }
    w.kernel(flash(r, block_of(r), false));
    if (step == 0) continue;
    w.sweep("attention.join", 3 * output, 4.0 * static_cast<double>(output), 3 * sums);
    w.recomputed();
  }
}

void ring_backward(const RankShare& r, PieceWriter& w) {
  const std::int64_t last = r.how.context - 1, kv = 2 * r.tokens * r.kv_width;
  for (std::int64_t step = 0; step <= last; ++step) {
    const std::int64_t tensors = (step < last ? 2 : 0) + (step > 0 ? 2 : 0);
    hop(r, w, step > 0 ? "attention.ring_kv_grad" : "attention.ring_kv_again", tensors, 1);
    w.kernel(flash(r, block_of(r), true));
    if (step > 0) w.sweep("attention.join_kv_grad", 3 * kv, static_cast<double>(kv));
  }
  hop(r, w, "attention.ring_kv_grad", 2, 0);
}

void core_forward(const RankShare& r, PieceWriter& w) {
  if (r.how.ring_attention) return ring_forward(r, w);
  // Each context rank has its queries and gathers all keys, as Llama 3's training did.
  if (r.how.context > 1)
    w.exchange("attention.gather_kv", CollectiveKind::all_gather, gathered_kv(r), 0,
               Dimension::context);
  if (r.how.flash_attention)
    w.kernel(flash(r, {r.keys, r.computed_pairs()}, false));
  else
    plain_forward(r, w);
}

void core_backward(const RankShare& r, PieceWriter& w) {
  if (r.how.ring_attention) return ring_backward(r, w);
  if (r.how.context > 1)
    w.exchange("attention.gather_kv_again", CollectiveKind::all_gather, gathered_kv(r), 0,
               Dimension::context);
  if (r.how.flash_attention)
    w.kernel(flash(r, {r.keys, r.computed_pairs()}, true));
  else
    plain_backward(r, w);
  if (r.how.context > 1)
    w.exchange("attention.reduce_kv", CollectiveKind::reduce_scatter, gathered_kv(r), 0,
               Dimension::context);
}

}  // namespace

void attention_forward(const RankShare& r, PieceWriter& w) {
  if (!r.model.norm_after) norm_forward(r, w, "attention.norm");
  w.column_forward(qkv(r));
  rope(r, w, "attention.rope");
  core_forward(r, w);
  w.row_forward(out(r));
  residual_forward(r, w, "attention.residual", r.model.out_bias);
  if (r.model.norm_after) norm_forward(r, w, "attention.norm");
}

void attention_backward(const RankShare& r, PieceWriter& w) {
  if (r.model.norm_after) norm_backward(r, w, "attention.norm");
  residual_backward(r, w, "attention.residual", r.model.out_bias);
  w.row_backward(out(r));
  core_backward(r, w);
  rope(r, w, "attention.rope.grad");
  w.column_backward(qkv(r));
  if (!r.model.norm_after) norm_backward(r, w, "attention.norm");
  join_gradients(r, w, "attention.residual");
}

// Korthikanti et al. 2022, section 4.1: the input of qkv (2sbh, parted only by sequence
// parallelism), Q, K and V (6sbh/t), the input of out (2sbh/t), the mask of the dropout behind it
// (sbh); softmax's output (2as²b/t), the mask of its dropout (as²b/t) and what the dropout leaves
// (2as²b/t) are what selective recomputation saves.
Bytes attention_kept(const RankShare& r, bool selective) {
  const std::int64_t e = r.numbers.activation, mask = r.how.dropout ? 1 : 0;
  const std::int64_t normed =
      r.model.norm_after ? 0 : r.outside * r.model.hidden * e;  // after: it is the layer's input
  std::int64_t kept = normed + r.tokens * (2 * r.query_width + 2 * r.kv_width) * e;
  kept += r.outside * r.model.hidden * mask;
  if (selective) return Bytes{kept};
  if (r.how.flash_attention) return Bytes{kept + 4 * r.tokens * r.heads};
  return Bytes{kept + scores(r) * (r.how.dropout ? 2 * e + mask : e)};
}

}  // namespace rehearse
