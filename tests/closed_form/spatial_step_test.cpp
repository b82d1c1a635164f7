// Images cut in space: what each rank computes, which rows travel, and what a step then takes.
#include <gtest/gtest.h>

#include "sim/workload/model_presets.hpp"
#include "strategies/layers/optimizer.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"

namespace rehearse::spatial_step_test {
namespace {

/// A FLOP takes a picosecond, a byte none.
class FlopsCost final : public CostModel {
 public:
  Seconds compute(const Compute& work, const Accelerator&) const override {
    return work.flops / FlopsPerSecond{1e12};
  }
};
const FlopsCost cost;

std::vector<Piece> pieces_with(const Workload& model, std::int64_t ranks, bool forward) {
  std::vector<Piece> all;
  const Sharding how{.micro_batch = 2, .context = ranks, .precision = Precision::fp16};
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerPieces layer = pieces_of(model, l, how);
    const std::vector<Piece>& list = forward ? layer.forward : layer.backward;
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

double convolution_flops(const std::vector<Piece>& pieces) {
  double sum = 0;
  for (const Piece& piece : pieces)
    if (const auto* work = std::get_if<Compute>(&piece.work);
        work && piece.name.starts_with("conv"))
      sum += work->flops.count() * (work->gemm.m > 0 ? 1 : 0);
  return sum;
}

std::int64_t sent(const std::vector<Piece>& pieces, CollectiveKind kind) {
  std::int64_t bytes = 0;
  for (const Piece& piece : pieces)
    if (const auto* exchange = std::get_if<Exchange>(&piece.work))
      if (exchange->kind == kind) bytes += exchange->size.count();
  return bytes;
}

// VGG's images are 224 rows high and halved five times: strips of 2, 4 and 7 ranks are even up to
// the last convolutions, at 14 rows.
TEST(SpatialParallelism, RanksShareConvolutionsEvenly) {
  const Workload model = preset("vgg-16");
  for (const bool forward : {true, false}) {
    const double whole = convolution_flops(pieces_with(model, 1, forward));
    for (const std::int64_t ranks : {2, 7, 14})
      EXPECT_DOUBLE_EQ(
          convolution_flops(pieces_with(model, ranks, forward)) * static_cast<double>(ranks),
          whole);
    // 14 rows over 4 ranks: the longest strip has 4.
    EXPECT_GT(convolution_flops(pieces_with(model, 4, forward)) * 4, whole);
  }
}

// A 3x3 convolution needs one row from above and one from below, whatever the strip's height.
TEST(SpatialParallelism, RowsThatTravel) {
  const Workload model = preset("vgg-16");
  // Inputs of the 13 convolutions: channels × width.
  const std::int64_t row = 3 * 224 + 64 * 224 + 64 * 112 + 128 * 112 + 128 * 56 + 2 * 256 * 56 +
                           256 * 28 + 2 * 512 * 28 + 3 * 512 * 14;
  const std::int64_t bytes = 2 * 2;  // two samples, two bytes
  for (const std::int64_t ranks : {2, 7}) {
    const std::vector<Piece> forward = pieces_with(model, ranks, true),
                             backward = pieces_with(model, ranks, false);
    EXPECT_EQ(sent(forward, CollectiveKind::send_recv), 2 * row * bytes);
    // Nobody needs the gradient of the images.
    EXPECT_EQ(sent(backward, CollectiveKind::send_recv), 2 * (row - 3 * 224) * bytes);
    EXPECT_EQ(sent(forward, CollectiveKind::all_gather), 512 * 7 * 7 * bytes)
        << "the first product with all pixels";
  }
  EXPECT_EQ(sent(pieces_with(model, 1, true), CollectiveKind::send_recv), 0);
}

// ResNet-50 ends in a mean over the image: one number a channel is summed over the ranks.
TEST(SpatialParallelism, AMeanIsSummedOverTheRanks) {
  const Workload model = preset("resnet-50");
  EXPECT_EQ(sent(pieces_with(model, 4, true), CollectiveKind::all_reduce), 2048 * 2 * 2);
  EXPECT_EQ(sent(pieces_with(model, 4, true), CollectiveKind::all_gather), 0);
}

// Nothing overlaps: kernels, rows and the sum of gradients over dp × cp follow one another.
TEST(SpatialParallelism, AStepIsTheSumOfItsParts) {
  const Workload model = preset("vgg-16");
  for (const std::size_t ranks : {2, 7}) {
    const Topology machine = calm_star(ranks, {5.0_GBps, 1_us});
    Scenario scenario;
    scenario.parallelism.context = ranks;
    scenario.training = {.micro_batch_size = 2, .precision = Precision::fp16};
    scenario.collectives = {.all_reduce = "ring", .all_gather = "ring"};
    StepPredictor predictor(machine, cost);
    const Prediction told = predictor.predict(scenario, model, {}).prediction;
    Time expected;
    for (const bool forward : {true, false})
      for (const Piece& piece : pieces_with(model, static_cast<std::int64_t>(ranks), forward)) {
        if (const auto* work = std::get_if<Compute>(&piece.work)) {
          expected += Time::round(cost.compute(*work, {}));
          continue;
        }
        const auto& exchange = std::get<Exchange>(piece.work);
        const bool pairs = exchange.kind == CollectiveKind::send_recv;
        expected += time_of(pairs ? "pairwise" : "ring", exchange.kind, machine, exchange.size);
      }
    for (const Piece& piece : optimizer_pieces(scenario.training, told.parameters))
      expected += Time::round(cost.compute(std::get<Compute>(piece.work), {}));
    expected += time_of("ring", CollectiveKind::all_reduce, machine, Bytes{2 * told.parameters});
    EXPECT_EQ(told.step, expected) << ranks << " strips";
    EXPECT_EQ(predictor.predict(scenario, model, {.fold = false}).prediction.step, expected);
    EXPECT_EQ(predictor.quick(scenario, model).step, expected);
  }
}

}  // namespace
}  // namespace rehearse::spatial_step_test
