// Layers cut over ranks: nothing is lost, alike layers are alike, what cannot be cut says why.
#include "strategies/layers/tensor_parallel.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/workload/model_presets.hpp"

namespace rehearse::tensor_parallel_test {
namespace {

Sharding with_tensor(const Workload& model, std::int64_t t, bool sequence_parallel = false) {
  return {.micro_batch = 2,
          .seq_length = model.seq_length,
          .tensor = t,
          .sequence_parallel = sequence_parallel};
}

std::int64_t parameters(const PieceTable& pieces) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) sum += pieces[i].parameters;
  return sum;
}

std::string problem_of(const Workload& model, const Sharding& how) {
  try {
    check_sharding(model, how);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TensorParallel, OneRankHoldsTheModel) {
  for (const std::string& name : preset_names()) {
    const Workload model = preset(name);
    const PieceTable pieces{model, with_tensor(model, 1)};
    EXPECT_EQ(parameters(pieces), model.parameters()) << name;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      EXPECT_EQ(pieces[i].parameters, model.layers[i].parameters) << name << " layer " << i;
  }
}

// Split weights add up to the whole over the ranks; norms, biases behind the sums, positions and
// routers are on each of them.
TEST(TensorParallel, RanksTogetherHoldTheModel) {
  struct Row {
    const char* name;
    std::int64_t whole_in_block, whole_outside;
  };
  const std::int64_t h = 4096;
  for (const auto& [name, in_block, outside] :
       {Row{"megatron-7.5b", 4 * h + 2 * h, 2048 * h + 2 * h}, Row{"llama-2-7b", 2 * h, h},
        Row{"mixtral-8x7b", 2 * h + 8 * h, h}})
    for (const std::int64_t t : {2, 4, 8}) {
      Workload model = preset(name);
      model.transformer.vocabulary = 1024 * 40;  // divides by 128 × 8: nothing is padded
      const std::int64_t copied = in_block * model.transformer.layers + outside;
      const std::int64_t all = block_parameters(model.transformer) * model.transformer.layers +
                               embedding_parameters(model.transformer) +
                               head_parameters(model.transformer) +
                               model.transformer.norm_parameters();
      const PieceTable pieces{model, with_tensor(model, t)};
      EXPECT_EQ(t * parameters(pieces), all + (t - 1) * copied) << name << " tp " << t;
    }
}

TEST(TensorParallel, PadsTheVocabularyAsMegatronDoes) {
  EXPECT_EQ(padded_vocabulary(50257, 1), 50257);
  EXPECT_EQ(padded_vocabulary(50257, 2), 50432);
  EXPECT_EQ(padded_vocabulary(50257, 8), 51200);
  EXPECT_EQ(padded_vocabulary(51200, 8), 51200);
  const Workload model = preset("gpt3-175b");
  const LayerPieces head = pieces_of(model, model.layers.size() - 1, with_tensor(model, 8));
  EXPECT_EQ(head.tied_parameters, 51200 / 8 * 12288);
  EXPECT_EQ(head.parameters, 0);
}

TEST(TensorParallel, FewKeyValueHeadsAreOnSeveralRanks) {
  const Workload model = preset("llama-3-8b");
  ASSERT_EQ(problem_of(model, with_tensor(model, 16)), "");
  const LayerPieces eight = pieces_of(model, 1, with_tensor(model, 8));
  const LayerPieces sixteen = pieces_of(model, 1, with_tensor(model, 16));
  const std::int64_t h = 4096, kv = 2 * 128 * h;  // of one head
  EXPECT_EQ(2 * (sixteen.parameters - 2 * h - kv), eight.parameters - 2 * h - kv);
}

TEST(TensorParallel, AlikeLayersHaveEqualPieces) {
  for (const char* name : {"gpt2", "mixtral-8x7b", "resnet-50", "mlp", "bert-base"}) {
    const Workload model = preset(name);
    const Sharding how = with_tensor(model, 1);
    const PieceTable pieces{model, how};
    for (std::size_t i = 0; i < pieces.size(); ++i)
      EXPECT_EQ(pieces[i], pieces_of(model, i, how)) << name << " layer " << i;
  }
}

double product_flops(const std::vector<Piece>& pieces) {
  double flops = 0;
  for (const Piece& piece : pieces)
    if (const auto* work = std::get_if<Compute>(&piece.work); work && work->gemm.m > 0)
      flops += work->flops.count();
  return flops;
}

// In every model the forward products and the model's FLOPs agree, and the backward ones are twice
// as many, but for images and vectors that need no gradient.
TEST(TensorParallel, KernelsDoTheModelsFlops) {
  for (const std::string& name : preset_names()) {
    Workload model = preset(name);
    model.transformer.window = 0;  // plain attention computes all of the square
    Sharding how = with_tensor(model, 1);
    how.flash_attention = false;
    const PieceTable pieces{model, how};
    for (std::size_t i = 0; i < pieces.kinds().size(); ++i) {
      const LayerPieces& layer = pieces.kinds()[i];
      const double forward = product_flops(layer.forward);
      EXPECT_NEAR(layer.model_flops.count(), 3 * forward, 1e-9 * forward) << name << i;
      if (i > 0) {
        EXPECT_NEAR(product_flops(layer.backward), 2 * forward, 1e-9 * forward) << name << i;
      }
    }
  }
}

// Half of the work is of weights: what zero-bubble schedules put off.
TEST(TensorParallel, EveryWeightHasItsGradient) {
  for (const std::string& name : preset_names()) {
    const Workload model = preset(name);
    const PieceTable pieces{model, with_tensor(model, 1)};
    for (const LayerPieces& layer : pieces.kinds()) {
      std::size_t products = 0, gradients = 0;
      for (const Piece& piece : layer.forward) {
        const auto* work = std::get_if<Compute>(&piece.work);
        products += work && work->gemm.m > 0;
        EXPECT_FALSE(piece.of_weights);
      }
      for (const Piece& piece : layer.backward) {
        const auto* work = std::get_if<Compute>(&piece.work);
        gradients += work && work->gemm.m > 0 && piece.of_weights;
        EXPECT_FALSE(piece.recomputed);
        EXPECT_GT(std::get<Compute>(piece.work).traffic.count(), 0) << piece.name;
      }
      EXPECT_EQ(products, gradients) << name << " " << layer.name;
    }
  }
}

// nothing │ columns ┊ rows ─ all-reduce ─ columns ┊ rows ─ all-reduce.
TEST(TensorParallel, MlpIsSplitByColumnsThenRows) {
  const Workload mlp = preset("mlp");
  const PieceTable pieces{mlp, {.micro_batch = 64, .tensor = 4}};
  const auto exchanges = [](const std::vector<Piece>& list) {
    std::vector<std::int64_t> sizes;
    for (const Piece& piece : list)
      if (const auto* exchange = std::get_if<Exchange>(&piece.work))
        sizes.push_back(exchange->size.count());
    return sizes;
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(exchanges(pieces[0].forward), Sizes{});
  EXPECT_EQ(exchanges(pieces[1].forward), Sizes{64 * 4096 * 2});
  EXPECT_EQ(exchanges(pieces[2].forward), Sizes{});
  EXPECT_EQ(exchanges(pieces[3].forward), Sizes{64 * 1000 * 2});
  EXPECT_EQ(exchanges(pieces[0].backward), Sizes{});  // nobody needs the input's gradient
  EXPECT_EQ(exchanges(pieces[2].backward), Sizes{64 * 4096 * 2});
  EXPECT_EQ(pieces[0].output.count(), 64 * 1024 * 2);
  EXPECT_EQ(pieces[1].input, pieces[0].output);
  EXPECT_EQ(pieces[0].parameters, 1025 * 1024);
  EXPECT_EQ(pieces[1].parameters, 1024 * 4096 + 4096);
}

TEST(TensorParallel, ContextRanksShareTheTokens) {
  const Workload model = preset("llama-3-8b");
  Sharding how = with_tensor(model, 1);
  const LayerPieces whole = pieces_of(model, 1, how);
  how.context = 4;
  const LayerPieces part = pieces_of(model, 1, how);
  EXPECT_EQ(4 * part.input.count(), whole.input.count());
  EXPECT_EQ(part.model_flops, whole.model_flops);
  const Exchange* gather = nullptr;
  for (const Piece& piece : part.forward)
    if (const auto* exchange = std::get_if<Exchange>(&piece.work)) gather = exchange;
  ASSERT_TRUE(gather);
  EXPECT_EQ(*gather, (Exchange{Dimension::context, CollectiveKind::all_gather,
                               Bytes{2 * 2 * 8192 * 1024 * 2}}));
}

TEST(TensorParallel, SaysWhatDoesNotDivide) {
  const Workload gpt = preset("gpt3-175b"), llama = preset("llama-3-8b");
  EXPECT_EQ(problem_of(gpt, with_tensor(gpt, 5)),
            "error: 96 attention heads do not divide by tp 5\n"
            "error: 49152 columns of the MLP (intermediate_size) do not divide by tp 5");
  EXPECT_EQ(problem_of(llama, {.seq_length = 8191, .tensor = 2, .sequence_parallel = true}),
            "error: 8191 tokens of a sequence do not divide by tp 2");
  EXPECT_EQ(problem_of(llama, {.seq_length = 8190, .context = 4}),
            "error: seq_length 8190 does not divide by 2 × cp 4 = 8");
  EXPECT_EQ(problem_of(gpt, {.seq_length = 4096}),
            "error: seq_length 4096 is longer than the 2048 positions of gpt3-175b");
  EXPECT_EQ(problem_of(preset("resnet-50"), {.tensor = 2}),
            "error: tp 2: the convolutions of resnet-50 are not split over tensor ranks; cp splits "
            "their images, or use data or pipeline parallelism");
  EXPECT_EQ(problem_of(preset("resnet-50"), {.context = 225}),
            "error: cp 225: images of resnet-50 have 224 rows to split");
  EXPECT_EQ(problem_of(preset("mlp"), {.context = 2}), "error: cp 2: mlp has no sequence to split");
  EXPECT_EQ(problem_of(preset("mlp"), {.tensor = 3}),
            "error: 4096 outputs of layer 0 do not divide by tp 3\n"
            "error: 4096 outputs of layer 2 do not divide by tp 3");
  const Workload mixtral = preset("mixtral-8x7b");
  EXPECT_EQ(problem_of(mixtral, {.seq_length = 4096, .tensor = 2, .expert = 4}),
            "error: ep 4 with tp 2: tensor ranks would all send the same tokens; set "
            "sequence_parallel = true");
  EXPECT_EQ(problem_of(mixtral, {.seq_length = 4096, .expert_imbalance = 1.5}),
            "error: moe_load_imbalance 1.5 is of ranks that experts are dealt to: it needs ep 2 "
            "or more, not 1");
  EXPECT_EQ(problem_of(llama, {.seq_length = 4096, .expert_capacity = 1.25}),
            "error: moe_expert_capacity_factor 1.25, but the model has no experts");
  EXPECT_EQ(
      problem_of(
          llama,
          {.seq_length = 4096, .context = 2, .ring_attention = true, .flash_attention = false}),
      "error: cp_comm_type p2p joins blocks of flash attention; set flash_attention = true, "
      "or cp_comm_type = all_gather");
  EXPECT_EQ(
      problem_of(preset("mistral-7b"), {.seq_length = 8192, .context = 2, .ring_attention = true}),
      "error: cp_comm_type p2p: a window of 4096 tokens leaves most blocks of mistral-7b "
      "empty; use all_gather");
  EXPECT_EQ(problem_of(llama, {.micro_batch = 0}), "error: mbs is at least 1");
  EXPECT_EQ(problem_of(llama, {.micro_batch = 1'000'000'000, .seq_length = 1 << 20}),
            "error: micro_batch_size 1000000000 × seq_length 1048576 makes tensors of 3.5e+22 "
            "numbers; at most 1e16 are counted here");
}

}  // namespace
}  // namespace rehearse::tensor_parallel_test
