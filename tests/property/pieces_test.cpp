// What must hold of the pieces of every layer, on random models cut at random.
#include <gtest/gtest.h>

#include <random>

#include "strategies/layers/tensor_parallel.hpp"

namespace rehearse::pieces_test {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_{seed} {}
  bool flag() { return engine_() % 2 == 0; }
  std::int64_t one_of(std::initializer_list<std::int64_t> choices) {
    return *(choices.begin() + engine_() % choices.size());
  }

 private:
  std::mt19937_64 engine_;
};

Workload random_model(Draw& draw) {
  Transformer m{.layers = draw.one_of({1, 2, 7}),
                .heads = draw.one_of({1, 2, 6, 8, 32}),
                .head_size = draw.one_of({1, 7, 64, 128}),
                .ffn = draw.one_of({1, 24, 4096, 13824}),
                .vocabulary = draw.one_of({1, 127, 32000, 50257}),
                .positions = draw.one_of({1, 512, 4096})};
  m.hidden = draw.flag() ? m.heads * m.head_size : draw.one_of({1, 96, 1024});
  m.kv_heads = draw.flag() ? m.heads : draw.one_of({1, 2});
  if (m.heads % m.kv_heads != 0) m.kv_heads = m.heads;
  if (draw.flag()) m.experts = 8, m.experts_per_token = draw.one_of({1, 2, 8});
  m.window = draw.one_of({0, 0, 1, 300});
  m.norm = draw.flag() ? Norm::layer : Norm::rms;
  m.learned_positions = draw.flag();
  m.gated = draw.flag();
  m.causal = draw.flag();
  m.qkv_bias = draw.flag();
  m.out_bias = draw.flag();
  m.mlp_bias = draw.flag();
  m.tied = draw.flag();
  if (m.experts == 0 && draw.flag()) m.norm_after = m.pretraining_heads = true;
  return transformer_workload("random", "random", m);
}

Sharding random_sharding(Draw& draw, const Workload& model) {
  Sharding how{.micro_batch = draw.one_of({1, 3, 16}),
               .seq_length = draw.flag() ? model.seq_length : draw.one_of({1, 256, 1000}),
               .tensor = draw.one_of({1, 1, 2, 4, 8}),
               .context = draw.one_of({1, 1, 2})};
  how.sequence_parallel = how.tensor > 1 && draw.flag();
  how.precision = static_cast<Precision>(draw.one_of({0, 1, 2, 3, 4}));
  how.gradients_in_fp32 = draw.flag();
  how.flash_attention = draw.flag();
  how.dropout = draw.flag();
  return how;
}

void check_pieces(const std::vector<Piece>& pieces, const Sharding& how) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    EXPECT_FALSE(piece.name.empty());
    if (const auto* work = std::get_if<Compute>(&piece.work)) {
      EXPECT_GT(work->traffic.count(), 0) << piece.name;
      EXPECT_GE(work->flops.count(), 0) << piece.name;
      EXPECT_TRUE(work->math) << piece.name;
      EXPECT_EQ(piece.beside, 0) << piece.name;
      continue;
    }
    const Exchange& exchange = std::get<Exchange>(piece.work);
    EXPECT_GT(exchange.size.count(), 0) << piece.name;
    const std::int64_t ranks = exchange.dimension == Dimension::tensor ? how.tensor : how.context;
    EXPECT_GT(ranks, 1) << piece.name;
    EXPECT_LT(i + piece.beside, pieces.size()) << piece.name;
  }
}

double forward_products(const LayerPieces& layer) {
  double flops = 0;
  for (const Piece& piece : layer.forward)
    if (const auto* work = std::get_if<Compute>(&piece.work); work && work->gemm.m > 0)
      flops += work->flops.count();
  return flops;
}

void check_layer(const LayerPieces& layer, const LayerPieces& alone, const Sharding& how) {
  check_pieces(layer.forward, how);
  check_pieces(layer.backward, how);
  for (std::size_t kind = 0; kind < activation_kinds; ++kind) {
    EXPECT_GE(layer.kept_selective[kind].count(), 0);
    EXPECT_LE(layer.kept_selective[kind], layer.kept[kind]);
    EXPECT_GE((how.tensor * how.context) * layer.kept[kind], alone.kept[kind]);
  }
  EXPECT_GE(how.tensor * layer.parameters, alone.parameters);
  EXPECT_LE(layer.partial_parameters, layer.parameters);
  EXPECT_EQ(layer.model_flops, alone.model_flops);
  // Padding and copied heads add work; nothing takes any away.
  EXPECT_GE(static_cast<double>(how.tensor * how.context) * forward_products(layer),
            forward_products(alone) * (1 - 1e-12));
}

TEST(Pieces, HoldTogetherForAnyModelAndCut) {
  std::size_t cut = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw{seed};
    const Workload model = random_model(draw);
    const Sharding how = random_sharding(draw, model);
    if (!sharding_problems(model, how).empty()) continue;
    Sharding alone = how;
    alone.tensor = alone.context = 1;
    alone.sequence_parallel = false;
    const PieceTable pieces{model, how}, whole{model, alone};
    for (std::size_t i = 0; i < pieces.kinds().size(); ++i)
      check_layer(pieces.kinds()[i], whole.kinds()[i], how);
    EXPECT_EQ(whole[0].parameters, model.layers[0].parameters);
    cut += how.tensor * how.context > 1;
    if (HasFailure()) break;
  }
  EXPECT_GE(cut, 200u);
}

}  // namespace
}  // namespace rehearse::pieces_test
