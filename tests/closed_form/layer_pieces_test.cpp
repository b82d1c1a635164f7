// Activation memory, FLOPs and exchanges of a layer against the formulas of the papers, exactly.
#include <gtest/gtest.h>

#include <numeric>

#include "sim/workload/model_presets.hpp"
#include "strategies/layers/tensor_parallel.hpp"

namespace rehearse::layer_pieces_test {
namespace {

Bytes sum(const Activations& kept) { return std::accumulate(kept.begin(), kept.end(), Bytes{}); }

const LayerPieces block_of(const Workload& model, const Sharding& how) {
  check_sharding(model, how);
  return pieces_of(model, 1, how);
}

// Korthikanti et al. 2022 count 16-bit numbers, dropout, and attention that makes its matrices.
Sharding plain(const Workload& model, std::int64_t b, std::int64_t t, bool sequence_parallel) {
  return {.micro_batch = b,
          .seq_length = model.seq_length,
          .tensor = t,
          .sequence_parallel = sequence_parallel,
          .flash_attention = false,
          .dropout = true};
}

// Table 2, per layer: sbh(10 + 24/t + 5as/ht) with tensor parallelism, sbh/t (34 + 5as/h) with
// sequence parallelism too; 5as/ht goes with selective recomputation, all but 2sbh with full.
TEST(ActivationMemory, IsKorthikantis) {
  for (const char* name : {"megatron-1.7b", "gpt3-175b", "megatron-530b", "megatron-1t", "gpt2"}) {
    const Workload model = preset(name);
    const std::int64_t h = model.transformer.hidden, a = model.transformer.heads;
    const std::int64_t s = model.seq_length;
    for (const std::int64_t b : {1, 4})
      for (const std::int64_t t : {1, 2, 4, 8}) {
        if (a % t != 0) continue;
        const std::int64_t sbh = s * b * h, scores = 5 * a * s * s * b;
        const LayerPieces split = block_of(model, plain(model, b, t, false));
        EXPECT_EQ(sum(split.kept).count(), 10 * sbh + 24 * sbh / t + scores / t) << name << t;
        EXPECT_EQ(sum(split.kept_selective).count(), 10 * sbh + 24 * sbh / t) << name << t;
        EXPECT_EQ(split.input.count(), 2 * sbh) << name << t;
        const LayerPieces parted = block_of(model, plain(model, b, t, t > 1));
        EXPECT_EQ(sum(parted.kept).count(), (34 * sbh + scores) / t) << name << t;
        EXPECT_EQ(sum(parted.kept_selective).count(), 34 * sbh / t) << name << t;
        EXPECT_EQ(parted.input.count(), 2 * sbh / t) << name << t;
      }
  }
}

// Section 4.3: the last norm, the head's input and the fp32 logits are 4sbh/t (1 + v/h); here the
// embedding's dropout keeps sbh/t and the words' numbers, 8 bytes each.
TEST(ActivationMemory, OfTheEnds) {
  const Workload model = preset("megatron-145b");
  const Sharding how = plain(model, 1, 8, true);
  const std::int64_t s = model.seq_length, h = model.transformer.hidden, v = 51200;
  const std::size_t last = model.layers.size() - 1;
  const Bytes ends =
      sum(pieces_of(model, last - 1, how).kept) + sum(pieces_of(model, last, how).kept);
  EXPECT_EQ(ends.count(), 4 * s * h / 8 + 4 * s * v / 8);
  EXPECT_EQ(sum(pieces_of(model, 0, how).kept).count(), s * h / 8 + 8 * s);
}

// No s×s matrix is kept: only the logarithm of each row's sum, in fp32.
TEST(ActivationMemory, FlashAttentionKeepsNoScores) {
  const Workload model = preset("gpt3-175b");
  Sharding how = plain(model, 1, 8, true);
  how.flash_attention = true;
  const std::int64_t s = model.seq_length, h = model.transformer.hidden;
  EXPECT_EQ(sum(block_of(model, how).kept).count(), 34 * s * h / 8 + 4 * s * 96 / 8);
  how.dropout = false;  // nor masks
  EXPECT_EQ(sum(block_of(model, how).kept).count(), 32 * s * h / 8 + 4 * s * 96 / 8);
}

// Llama 3 8B: RMS norms 4sbh, inputs of qkv and up 4sbh, Q and the output 4sbh, K and V sbh (a
// quarter of the heads), gate, up and their product 3 × 2sb × 14336.
TEST(ActivationMemory, OfLlama) {
  const Workload model = preset("llama-3-8b");
  const Sharding how{.micro_batch = 2, .seq_length = 8192};
  const std::int64_t tokens = 2 * 8192;
  EXPECT_EQ(sum(block_of(model, how).kept).count(),
            tokens * (13 * 4096 + 6 * 14336) + 4 * tokens * 32);
}

// Narayanan et al., SC'21, without recomputation: 72 B s l h² (1 + s/6h + V/12lh).
TEST(ModelFlops, AreMegatrons) {
  for (const char* name : {"megatron-1.7b", "megatron-145b", "megatron-1t"})
    for (const std::int64_t t : {1, 8}) {
      const Workload model = preset(name);
      const PieceTable pieces{model, plain(model, 2, t, t > 1)};
      double flops = 0;
      for (std::size_t i = 0; i < pieces.size(); ++i) flops += pieces[i].model_flops.count();
      const auto l = static_cast<double>(model.transformer.layers);
      const auto h = static_cast<double>(model.transformer.hidden);
      const auto s = static_cast<double>(model.seq_length);
      const double formula = 72 * 2 * s * l * h * h * (1 + s / (6 * h) + 51200 / (12 * l * h));
      EXPECT_NEAR(flops / formula, 1, 1e-12) << name;
    }
}

Flops matrix_flops(const std::vector<Piece>& pieces) {
  Flops flops;
  for (const Piece& piece : pieces)
    if (const auto* work = std::get_if<Compute>(&piece.work); work && work->gemm.m > 0)
      flops += work->flops;
  return flops;
}

// Without flash attention every product is there: twice the forward ones in the backward pass, and
// the ranks together do what one would.
TEST(ModelFlops, AreDoneByTheKernels) {
  const Workload model = preset("megatron-7.5b");
  for (const std::int64_t t : {1, 2, 8}) {
    const PieceTable pieces{model, plain(model, 1, t, t > 1)};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const double ranks = static_cast<double>(t);
      const Flops forward = matrix_flops(pieces[i].forward);
      const Flops backward = matrix_flops(pieces[i].backward);
      EXPECT_DOUBLE_EQ(3 * ranks * forward.count(), pieces[i].model_flops.count()) << i;
      EXPECT_DOUBLE_EQ(backward.count(), 2 * forward.count()) << i;
    }
  }
}

// A causal flash kernel computes half of the square forward and five products for two backward.
TEST(ModelFlops, OfFlashAttention) {
  const Workload model = preset("megatron-7.5b");
  Sharding how = plain(model, 1, 1, false);
  how.flash_attention = true;
  const auto s = static_cast<double>(model.seq_length);
  const auto h = static_cast<double>(model.transformer.hidden);
  const auto flops_of = [](const std::vector<Piece>& pieces, std::string_view name) {
    for (const Piece& piece : pieces)
      if (piece.name == name) return std::get<Compute>(piece.work).flops.count();
    return 0.0;
  };
  const LayerPieces block = block_of(model, how);
  EXPECT_DOUBLE_EQ(flops_of(block.forward, "attention.flash"), 2 * s * s * h);
  EXPECT_DOUBLE_EQ(flops_of(block.backward, "attention.flash.grad"), 5 * s * s * h);
}

// Exchanges of a block: 2 all-reduces of 2sbh bytes each way; with sequence parallelism 2 pairs of
// all-gather and reduce-scatter each way, and 2 all-gathers more for the weights' gradients.
TEST(Exchanges, AreMegatrons) {
  const Workload model = preset("gpt3-175b");
  const std::int64_t stream = 2 * 2048 * 12288;
  const auto count = [&](const std::vector<Piece>& pieces, CollectiveKind kind) {
    std::size_t found = 0;
    for (const Piece& piece : pieces)
      if (const auto* work = std::get_if<Exchange>(&piece.work)) {
        EXPECT_EQ(work->dimension, Dimension::tensor);
        EXPECT_EQ(work->size.count(), stream) << piece.name;
        found += work->kind == kind;
      }
    return found;
  };
  using enum CollectiveKind;
  const LayerPieces split = block_of(model, plain(model, 1, 8, false));
  EXPECT_EQ(count(split.forward, all_reduce), 2u);
  EXPECT_EQ(count(split.backward, all_reduce), 2u);
  EXPECT_EQ(count(split.backward, all_gather), 0u);
  const LayerPieces parted = block_of(model, plain(model, 1, 8, true));
  EXPECT_EQ(count(parted.forward, all_gather), 2u);
  EXPECT_EQ(count(parted.forward, reduce_scatter), 2u);
  EXPECT_EQ(count(parted.forward, all_reduce), 0u);
  EXPECT_EQ(count(parted.backward, all_gather), 4u);
  EXPECT_EQ(count(parted.backward, reduce_scatter), 2u);
  EXPECT_EQ(count(block_of(model, plain(model, 1, 1, false)).forward, all_reduce), 0u);
}

// Multiplications and additions of one image in 10⁹, as torchvision lists them with its weights.
TEST(ModelFlops, OfImagesAreTorchvisions) {
  constexpr std::pair<const char*, double> table[] = {
      {"alexnet", 0.71}, {"vgg-16", 15.47}, {"resnet-50", 4.09}, {"inception-v3", 5.71}};
  for (const auto& [name, billions] : table) {
    const Workload net = preset(name);
    const PieceTable pieces{net, {}};
    double flops = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (net.layers[i].name != "auxiliary classes") flops += pieces[i].model_flops.count();
    EXPECT_NEAR(flops / 3 / 2 / 1e9, billions, 0.005) << name;
  }
}

// Mixtral computes with 2 of its 8 experts: 12,879,925,248 of its parameters are active, of which
// the lookup of the embedding is no product, nor are the norms.
TEST(ModelFlops, OfExpertsAreTheActiveOnes) {
  const Workload model = preset("mixtral-8x7b");
  const std::int64_t s = 4096;
  const PieceTable pieces{model, {.seq_length = s}};
  double flops = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) flops += pieces[i].model_flops.count();
  const double active = 12'879'925'248.0 - 32000.0 * 4096 - (2 * 32 + 1) * 4096;
  EXPECT_DOUBLE_EQ(flops, 6.0 * s * active + 12.0 * s * s * 4096 * 32);
}

}  // namespace
}  // namespace rehearse::layer_pieces_test
