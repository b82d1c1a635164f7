// Kernels put together: a small language model whose whole gradient is that of central differences,
// that learns, and that leaves the same bits on every run.
#include "kernels/math/activation.hpp"
#include "kernels/math/cross_entropy.hpp"
#include "kernels/math/embedding.hpp"
#include "kernels/math/gemm.hpp"
#include "kernels/math/norm.hpp"
#include "kernels/math/optimizers.hpp"
#include "tests/kernels/numbers.hpp"

namespace rehearse::training_test {
namespace {

constexpr std::size_t vocabulary = 7, width = 6, hidden = 5, tokens = 9;

// embedding, RMS norm, W1, bias, GELU, W2, cross-entropy: all parameters in one vector.
class Model {
 public:
  static constexpr std::size_t norm_at = vocabulary * width, w1_at = norm_at + width;
  static constexpr std::size_t bias_at = w1_at + width * hidden, w2_at = bias_at + hidden;
  static constexpr std::size_t parameter_count = w2_at + hidden * vocabulary;

  /// `garbage` fills all that the kernels are to write.
  Model(std::uint64_t seed, float garbage)
      : parameters{SeededNumbers(seed).floats(parameter_count, -0.5, 0.5)},
        gradients(parameter_count),
        x_(tokens * width, garbage),
        n_(x_),
        dx_(x_),
        dn_(x_),
        rate_(tokens, garbage),
        a_(tokens * hidden, garbage),
        h_(a_),
        da_(a_),
        dh_(a_),
        logits_(tokens * vocabulary, garbage),
        losses_(tokens, garbage) {}

  LossSum forward(std::span<const Token> inputs, std::span<const Token> targets) {
    const std::span<const float> p = parameters;
    embedding(p.first(norm_at), {vocabulary, width}, inputs, x_);
    rms_norm(x_, p.subspan(norm_at, width), {tokens, width}, 1e-5F, n_, rate_);
    gemm({.m = tokens, .n = hidden, .k = width}, n_, p.subspan(w1_at, width * hidden), a_);
    bias_gelu(a_, p.subspan(bias_at, hidden), {tokens, hidden}, GeluForm::erf, h_);
    gemm({.m = tokens, .n = vocabulary, .k = hidden}, h_, p.subspan(w2_at), logits_);
    return cross_entropy(logits_, targets, {tokens, vocabulary}, losses_);
  }

  void backward(std::span<const Token> inputs, std::span<const Token> targets, float scale) {
    const std::span<const float> p = parameters;
    const std::span<float> g = gradients;
    std::ranges::fill(gradients, 0.0F);
    cross_entropy_backward(logits_, targets, {tokens, vocabulary}, scale, logits_);
    gemm({.m = tokens, .n = hidden, .k = vocabulary, .transpose_b = true}, logits_,
         p.subspan(w2_at), dh_);
    gemm({.m = hidden, .n = vocabulary, .k = tokens, .transpose_a = true, .beta = 1}, h_, logits_,
         g.subspan(w2_at));
    bias_gelu_backward(dh_, a_, p.subspan(bias_at, hidden), {tokens, hidden}, GeluForm::erf, da_,
                       g.subspan(bias_at, hidden));
    gemm({.m = tokens, .n = width, .k = hidden, .transpose_b = true}, da_,
         p.subspan(w1_at, width * hidden), dn_);
    gemm({.m = width, .n = hidden, .k = tokens, .transpose_a = true, .beta = 1}, n_, da_,
         g.subspan(w1_at, width * hidden));
    rms_norm_backward(dn_, x_, p.subspan(norm_at, width), {tokens, width}, rate_, dx_,
                      g.subspan(norm_at, width));
    embedding_backward(dx_, inputs, g.first(norm_at), {vocabulary, width});
  }

  Floats parameters, gradients;

 private:
  Floats x_, n_, dx_, dn_, rate_, a_, h_, da_, dh_, logits_, losses_;
};

// The next token is a fixed function of this one; one position is padding.
struct Text {
  std::vector<Token> inputs, targets;

  Text() {
    for (std::size_t i = 0; i < tokens; ++i) {
      inputs.push_back(static_cast<Token>(i % vocabulary));
      targets.push_back(static_cast<Token>((3 * i + 2) % vocabulary));
    }
    // 3 · 7 + 2 and 3 · 0 + 2 name the same token, as the same input must have the same answer
    targets.back() = ignored_token;
  }
};

TEST(Training, TheWholeGradientIsThatOfDifferences) {
  const Text text;
  Model model(7, 0.0F);
  model.forward(text.inputs, text.targets);
  model.backward(text.inputs, text.targets, 1);
  // Kernels are fp32 here, so the step is long and the bound wide; each alone is held to 1e-6.
  for (std::size_t i = 0; i < Model::parameter_count; ++i) {
    constexpr float step = 1e-2F;
    Model moved = model;
    moved.parameters[i] = model.parameters[i] + step;
    const double above = moved.forward(text.inputs, text.targets).sum;
    moved.parameters[i] = model.parameters[i] - step;
    const double below = moved.forward(text.inputs, text.targets).sum;
    ASSERT_NEAR(static_cast<double>(model.gradients[i]),
                (above - below) / (2 * static_cast<double>(step)), 2e-3)
        << "parameter " << i;
  }
}

// Trains from the same seed in buffers that begin with `garbage`; the losses are returned too.
Floats train(float garbage, Doubles& losses) {
  const Text text;
  Model model(8, garbage);
  Floats first(Model::parameter_count), second(Model::parameter_count);
  for (std::uint64_t t = 1; t <= 100; ++t) {
    const LossSum loss = model.forward(text.inputs, text.targets);
    losses.push_back(loss.sum / static_cast<double>(loss.counted));
    model.backward(text.inputs, text.targets, 1.0F / static_cast<float>(loss.counted));
    adam_step({.rate = 0.03F}, {.master = model.parameters, .gradient = model.gradients},
              {first, second}, t);
  }
  return model.parameters;
}

TEST(Training, LearnsAndLeavesTheSameBits) {
  Doubles losses, again;
  const Floats once = train(0.0F, losses), twice = train(1e30F, again);
  EXPECT_NEAR(losses.front(), std::log(7.0), 0.3);  // it knows nothing yet
  EXPECT_LT(losses.back(), 0.05);
  EXPECT_EQ(bits(once), bits(twice));
  EXPECT_EQ(losses, again);
}

}  // namespace
}  // namespace rehearse::training_test
