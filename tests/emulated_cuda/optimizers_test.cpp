// Every optimizer, three steps long, has the bits of the CPU; norms but for the last bits of fp64.
#include "kernels/math/optimizers.hpp"

#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/gradient_norm.hpp"
#include "tests/emulated_cuda/arrays.hpp"

namespace rehearse::optimizers_test {
namespace {

class Optimizers : public OnGpu {};

struct Layer {
  Floats master, gradient, first, second, update;
  std::vector<Bf16> bf16;
  std::vector<Fp16> fp16;

  Layer(std::size_t n, std::uint64_t seed) : update(n), bf16(n), fp16(n) {
    SeededNumbers numbers(seed);
    master = numbers.floats(n);
    gradient = numbers.floats(n);
    first = second = Floats(n);
  }
  Weights weights(WeightCopy copy) { return {master, copy, gradient, 0.7F}; }
};

struct DeviceLayer {
  DeviceArray<float> master, gradient, first, second, update;
  DeviceArray<Bf16> bf16;
  DeviceArray<Fp16> fp16;
  DeviceArray<double> scratch;
  DeviceArray<LayerSquares> squares{1};
  DeviceArray<float> ratio{1};

  explicit DeviceLayer(const Layer& layer)
      : master{layer.master},
        gradient{layer.gradient, 1},
        first{layer.first},
        second{layer.second},
        update{layer.update},
        bf16{layer.bf16},
        fp16{layer.fp16, 1},
        scratch{norm_scratch_numbers(layer.master.size())} {}
  Weights weights(WeightCopy copy) { return {master, copy, gradient, 0.7F}; }

  void expect_same(const Layer& layer) {
    EXPECT_EQ(bits(master.values()), bits(layer.master));
    EXPECT_EQ(bits(first.values()), bits(layer.first));
    EXPECT_EQ(bits(second.values()), bits(layer.second));
    EXPECT_EQ(bf16.values(), layer.bf16);
    EXPECT_EQ(fp16.values(), layer.fp16);
  }
};

constexpr std::size_t sizes[] = {0, 1, 255, 1024, 5001};

TEST_F(Optimizers, Sgd) {
  for (const std::size_t n : sizes) {
    Layer layer{n, n};
    DeviceLayer there{layer};
    for (int step = 0; step < 3; ++step) {
      sgd_step({.rate = 0.1F, .decay = 0.01F}, layer.weights(std::span{layer.bf16}));
      sgd_step(stream, {.rate = 0.1F, .decay = 0.01F}, there.weights(there.bf16.span()));
    }
    there.expect_same(layer);
  }
}

TEST_F(Optimizers, Momentum) {
  for (const std::size_t n : sizes)
    for (const bool nesterov : {false, true}) {
      const Momentum settings{.rate = 0.1F, .decay = 0.01F, .nesterov = nesterov};
      Layer layer{n, n};
      DeviceLayer there{layer};
      for (int step = 0; step < 3; ++step) {
        momentum_step(settings, layer.weights(std::span{layer.fp16}), layer.first);
        momentum_step(stream, settings, there.weights(there.fp16.span()), there.first);
      }
      there.expect_same(layer);
    }
}

TEST_F(Optimizers, Adam) {
  for (const std::size_t n : sizes)
    for (const bool decoupled : {false, true}) {
      const Adam adam{.rate = 0.01F, .decay = 0.1F, .decoupled = decoupled};
      Layer layer{n, n};
      DeviceLayer there{layer};
      for (std::uint64_t step = 1; step <= 3; ++step) {
        adam_step(adam, layer.weights({}), {layer.first, layer.second}, step);
        adam_step(stream, adam, there.weights({}), {there.first, there.second}, step);
      }
      there.expect_same(layer);
    }
}

void expect_near(const LayerSquares& got, const LayerSquares& wanted) {
  EXPECT_NEAR(got.weights, wanted.weights, 1e-12 * (1 + wanted.weights));
  EXPECT_NEAR(got.other, wanted.other, 1e-12 * (1 + wanted.other));
}

TEST_F(Optimizers, SumOfSquares) {
  const Floats x = SeededNumbers{1}.floats(9000);
  const DeviceArray<float> there{x};
  const DeviceArray<double> scratch{norm_scratch_numbers(9000)}, sum{1};
  sum_of_squares(stream, there, scratch, sum.data());
  EXPECT_NEAR(sum.values()[0], sum_of_squares(x), 1e-9);
}

// The ratio is rounded to fp32 after sums in fp64, so that here its bits agree too.
TEST_F(Optimizers, Lars) {
  const Lars lars{.rate = 0.1F, .decay = 0.01F};
  for (const std::size_t n : sizes) {
    Layer layer{n, n};
    DeviceLayer there{layer};
    for (int step = 0; step < 3; ++step) {
      const LayerSquares squares = lars_squares(layer.weights({}));
      lars_step(lars, layer.weights(std::span{layer.bf16}), layer.first, lars_ratio(lars, squares));
      lars_squares(stream, there.weights({}), there.scratch, there.squares.data());
      expect_near(there.squares.values()[0], squares);
      lars_ratio(stream, lars, there.squares.data(), there.ratio.data());
      lars_step(stream, lars, there.weights(there.bf16.span()), there.first, there.ratio.data());
    }
    there.expect_same(layer);
  }
}

TEST_F(Optimizers, Lamb) {
  const Lamb lamb{.rate = 0.1F, .decay = 0.01F};
  for (const std::size_t n : sizes) {
    Layer layer{n, n};
    DeviceLayer there{layer};
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const LayerSquares squares =
          lamb_update(lamb, layer.weights({}), {layer.first, layer.second}, step, layer.update);
      lamb_apply(lamb, layer.weights(std::span{layer.fp16}), layer.update, lamb_ratio(squares));
      lamb_update(stream, lamb, there.weights({}), {there.first, there.second}, step, there.update,
                  there.scratch, there.squares.data());
      expect_near(there.squares.values()[0], squares);
      lamb_ratio(stream, there.squares.data(), there.ratio.data());
      lamb_apply(stream, lamb, there.weights(there.fp16.span()), there.update, there.ratio.data());
    }
    there.expect_same(layer);
  }
}

TEST_F(Optimizers, SpinEnds) {
  spin(stream, 100000);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

}  // namespace
}  // namespace rehearse::optimizers_test
