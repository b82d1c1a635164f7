// One rank's part of a transformer, and the pieces of its layers: attention_pieces.cpp,
// mlp_pieces.cpp and end_pieces.cpp (embedding, last norm, head) write them.
#pragma once

#include <cstdint>

#include "strategies/layers/piece_writer.hpp"

namespace rehearse {

/// Widths and counts as this rank holds them. Inside the tensor-parallel regions it has all the
/// tokens and a part of the widths; outside it has whole widths and, under sequence parallelism,
/// a part of the tokens.
struct RankShare {
  RankShare(const Workload& workload, const Sharding& how);

  const Transformer& model;
  const Sharding& how;
  Numbers numbers;
  std::int64_t queries, keys;    // tokens of a sequence here, and those they may look at
  std::int64_t tokens, outside;  // of a micro-batch inside and outside the regions
  std::int64_t heads, query_width, kv_width, ffn, vocabulary;
  std::int64_t ups;      // 2: a gate and an up matrix
  std::int64_t experts;  // on this rank

  /// (query, key) pairs for which a kernel that skips masked blocks computes, over all heads here.
  double computed_pairs() const;
  Bytes stream() const;  // the residual stream between layers: hidden numbers a token
};

// Each adds its pieces at the end of the list; backward ones in the order of autograd.
void attention_forward(const RankShare&, PieceWriter&);
void attention_backward(const RankShare&, PieceWriter&);
void mlp_forward(const RankShare&, PieceWriter&);
void mlp_backward(const RankShare&, PieceWriter&);
void expert_forward(const RankShare&, PieceWriter&);
void expert_backward(const RankShare&, PieceWriter&);

// What the halves of a block keep for their backward pass, without the input of their norms.
Bytes attention_kept(const RankShare&, bool selective);
Bytes mlp_kept(const RankShare&);
Bytes expert_kept(const RankShare&);

void norm_forward(const RankShare&, PieceWriter&, std::string_view name);
void norm_backward(const RankShare&, PieceWriter&, std::string_view name);
/// Bias, dropout and the sum with the residual in one kernel, as Megatron fuses them.
void residual_forward(const RankShare&, PieceWriter&, std::string_view name, bool bias);
void residual_backward(const RankShare&, PieceWriter&, std::string_view name, bool bias);
/// The gradients of the two ways into a residual sum, added.
void join_gradients(const RankShare&, PieceWriter&, std::string_view name);

LayerPieces block_pieces(const RankShare&);
LayerPieces embedding_pieces(const RankShare&);
LayerPieces final_norm_pieces(const RankShare&);
LayerPieces head_pieces(const RankShare&);

}  // namespace rehearse
