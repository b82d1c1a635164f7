// The two ends of a transformer: embedding, last norm, LM head with its loss. The vocabulary is cut
// over the tensor ranks: each looks up and scores its own words, and small sums join them.
#include <algorithm>
#include <cmath>

#include "strategies/layers/transformer_pieces.hpp"

namespace rehearse {

namespace {

void embedding_forward(const RankShare& r, PieceWriter& w) {
  const std::int64_t inside = r.tokens * r.model.hidden, outside = r.outside * r.model.hidden;
  w.sweep("embedding", 2 * inside, 0, 8 * r.tokens);
  // With positions to add, Megatron sums over the ranks first and parts the sequence after.
  if (r.how.tensor > 1 && r.model.learned_positions)
    w.exchange("embedding.all_reduce", CollectiveKind::all_reduce, inside * r.numbers.activation);
  else
    w.leave("embedding", r.tokens, r.model.hidden);
  if (r.model.learned_positions) {
    const std::int64_t added = r.model.token_types > 0 ? 2 : 1;
    w.sweep("embedding.positions", (2 + added) * inside, static_cast<double>(added * inside));
    w.leaves(inside, Elementwise::whole, true);
  }
  if (r.model.norm_after) norm_forward(r, w, "embedding.norm");
  if (r.how.dropout) {
    w.sweep("embedding.dropout", 2 * outside, static_cast<double>(outside), outside);
    w.leaves(outside, Elementwise::whole, true);
  }
}

void embedding_backward(const RankShare& r, PieceWriter& w) {
  const std::int64_t inside = r.tokens * r.model.hidden, outside = r.outside * r.model.hidden;
  if (r.how.dropout)
    w.sweep("embedding.dropout.grad", 2 * outside, static_cast<double>(outside), outside);
  if (r.model.norm_after) norm_backward(r, w, "embedding.norm");
  w.enter("embedding.grad", r.tokens, r.model.hidden);
  // Rows of the tables, read and written where a token stands for them.
  const auto scatter = [&](std::string name) {
    w.sweep(std::move(name), inside, static_cast<double>(inside),
            2 * inside * r.numbers.gradient + 8 * r.tokens);
    w.of_weights();
  };
  if (r.model.learned_positions) scatter("embedding.positions.wgrad");
  if (r.model.token_types > 0) scatter("embedding.types.wgrad");
  scatter("embedding.wgrad");
}

// Who gathers the masked ones first has the head work on those alone.
std::int64_t scored(const RankShare& r, std::int64_t tokens) {
  if (r.model.scored >= 1) return tokens;
  return std::max<std::int64_t>(1, std::llround(r.model.scored * static_cast<double>(tokens)));
}

// Of a token, on this rank. A few classes are whole on every one.
std::int64_t scores_of(const RankShare& r) {
  return r.model.classes > 0 ? r.model.classes : r.vocabulary;
}

Product logits(const RankShare& r) {
  return {.name = "head.logits",
          .tokens = scored(r, r.tokens),
          .inputs = r.model.hidden,
          .outputs = scores_of(r),
          .bias = r.model.pretraining_heads || r.model.classes > 0,
          .wide = true};
}

// BERT's masked-LM transform, whole on every tensor rank, as in Megatron.
Product transform(const RankShare& r) {
  return {"head.transform", scored(r, r.outside), r.model.hidden, r.model.hidden, true};
}

Product pooler(const RankShare& r) {
  return {"head.pooler", r.how.micro_batch, r.model.hidden, r.model.hidden, true};
}

// Megatron's vocab_parallel_cross_entropy, in fp32: the largest logit, then the target's own and
// the sum of exponentials, each joined over the ranks with 4 bytes a token.
void loss_forward(const RankShare& r, PieceWriter& w) {
  const std::int64_t scores = scored(r, r.tokens) * scores_of(r);
  const auto join = [&](std::string name) {
    if (r.how.tensor > 1)
      w.exchange(std::move(name), CollectiveKind::all_reduce, 4 * scored(r, r.tokens));
  };
  w.sweep("loss.max", scores, static_cast<double>(scores), 4 * scores);  // and the cast to fp32
  join("loss.max.all_reduce");
  w.sweep("loss.exp_sum", 0, 4.0 * static_cast<double>(scores), 2 * 4 * scores);
  join("loss.target.all_reduce");
  join("loss.sum.all_reduce");
  w.sweep("loss.softmax", 0, static_cast<double>(scores), 2 * 4 * scores);
}

std::int64_t pretraining_parameters(const RankShare& r) {
  const std::int64_t square = r.model.hidden * r.model.hidden + r.model.hidden;
  return 2 * square + r.model.norm_parameters() + r.vocabulary + 2 * r.model.hidden + 2;
}

Flops head_flops(const RankShare& r) {
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  const double tokens = r.model.scored * real(r.how.micro_batch) * real(r.keys);
  const double h = real(r.model.hidden);
  const double products =
      tokens * h * real(r.model.classes > 0 ? r.model.classes : r.model.vocabulary);
  const double others =
      r.model.pretraining_heads ? tokens * h * h + real(r.how.micro_batch) * h * h : 0;
  return Flops{3 * 2 * (products + others)};
}

void head_backward(const RankShare& r, PieceWriter& w) {
  const std::int64_t scores = scored(r, r.tokens) * scores_of(r);
  w.sweep("loss.grad", scores, 2.0 * static_cast<double>(scores), 4 * scores);
  w.column_backward(logits(r));
  if (!r.model.pretraining_heads) return;
  norm_backward(r, w, "head.norm");
  const std::int64_t numbers = scored(r, r.outside) * r.model.hidden;
  w.sweep("head.gelu.grad", 3 * numbers, 16.0 * static_cast<double>(numbers));
  for (const Product& product : {transform(r), pooler(r)}) {
    w.input_gradient(product);
    w.weight_gradient(product);
  }
}

}  // namespace

LayerPieces embedding_pieces(const RankShare& r) {
  LayerPieces pieces{.name = "embedding", .recomputes = false};
  PieceWriter forward{r.how, pieces.forward}, backward{r.how, pieces.backward};
  embedding_forward(r, forward);
  embedding_backward(r, backward);
  const Transformer& m = r.model;
  const std::int64_t rows = r.vocabulary + m.token_types + (m.learned_positions ? m.positions : 0);
  pieces.parameters = rows * m.hidden + (m.norm_after ? m.norm_parameters() : 0);
  if (r.how.sequence_parallel && m.norm_after) pieces.partial_parameters = m.norm_parameters();
  pieces.input = Bytes{8 * r.tokens};  // numbers of words
  pieces.output = r.stream();
  const Bytes mask{r.how.dropout ? r.outside * m.hidden : 0};
  const Bytes norm = m.norm_after ? r.stream() : Bytes{};
  pieces.kept = {pieces.input + mask, Bytes{}, Bytes{}, norm, Bytes{}};
  pieces.kept_selective = pieces.kept;
  return pieces;
}

LayerPieces final_norm_pieces(const RankShare& r) {
  LayerPieces pieces{.name = "final norm", .recomputes = false};
  PieceWriter forward{r.how, pieces.forward}, backward{r.how, pieces.backward};
  norm_forward(r, forward, "final_norm");
  norm_backward(r, backward, "final_norm");
  pieces.parameters = r.model.norm_parameters();
  if (r.how.sequence_parallel) pieces.partial_parameters = pieces.parameters;
  pieces.input = pieces.output = r.stream();
  pieces.kept = {r.stream(), Bytes{}, Bytes{}, Bytes{}, Bytes{}};
  pieces.kept_selective = pieces.kept;
  return pieces;
}

LayerPieces head_pieces(const RankShare& r) {
  LayerPieces pieces{.name = "head", .recomputes = false};
  PieceWriter forward{r.how, pieces.forward}, backward{r.how, pieces.backward};
  const Transformer& m = r.model;
  const std::int64_t numbers = scored(r, r.outside) * m.hidden;
  if (m.pretraining_heads) {
    forward.forward(pooler(r));
    forward.forward(transform(r));
    forward.sweep("head.gelu", 2 * numbers, 12.0 * static_cast<double>(numbers));
    norm_forward(r, forward, "head.norm");
  }
  forward.column_forward(logits(r));
  loss_forward(r, forward);
  head_backward(r, backward);

  const std::int64_t table = r.vocabulary * m.hidden;
  const bool tied = m.tied && m.classes == 0;
  pieces.parameters = m.classes > 0 ? head_parameters(m) : tied ? 0 : table;
  pieces.tied_parameters = tied ? table : 0;
  if (m.pretraining_heads) pieces.parameters += pretraining_parameters(r);
  if (m.pretraining_heads && r.how.sequence_parallel)  // of transform and norm
    pieces.partial_parameters = m.hidden * (m.hidden + 1) + m.norm_parameters();
  pieces.input = r.stream();
  // The input of the product, and the softmax in fp32 (Korthikanti et al. 2022, section 4.3).
  const Bytes norms = m.pretraining_heads ? 3 * r.stream() : Bytes{};
  pieces.kept = {r.stream(), Bytes{}, Bytes{}, norms,
                 Bytes{4 * scored(r, r.tokens) * scores_of(r)}};
  pieces.kept_selective = pieces.kept;
  pieces.model_flops = head_flops(r);
  return pieces;
}

}  // namespace rehearse
