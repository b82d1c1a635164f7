// A loss whose vocabulary is cut over ranks is the loss of the whole; positions, learned and
// rotary.
#include "kernels/math/vocabulary_loss.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/math/cross_entropy.hpp"
#include "kernels/math/philox.hpp"
#include "kernels/math/positions.hpp"

namespace rehearse::vocabulary_loss_test {
namespace {

std::vector<float> draws(std::size_t count, std::uint64_t stream) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(RandomWords{1, stream}.word(i)) * 0x1p-30F - 2;
  return values;
}

TEST(VocabularyLoss, InPartsIsCrossEntropy) {
  constexpr std::size_t rows = 5, words = 23, ranks = 4, here = 8;  // 32 with padding
  const std::vector<float> logits = draws(rows * words, 1);
  const std::vector<Token> targets{Token{0}, Token{22}, Token{7}, Token{8}, Token{15}};
  std::vector<std::vector<float>> parts;
  std::vector<VocabularyPart> shapes;
  std::vector<float> largest(rows, -INFINITY), target(rows), sum(rows);
  for (std::size_t r = 0; r < ranks; ++r) {
    std::vector<float>& part = parts.emplace_back(rows * here, 100.0F);  // padding must not count
    const std::size_t valid = std::min<std::size_t>(here, words - std::min(words, r * here));
    for (std::size_t i = 0; i < rows; ++i)
      std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(i * words + r * here), valid,
                  part.begin() + static_cast<std::ptrdiff_t>(i * here));
    shapes.push_back({{rows, here}, r * here, valid});
    std::vector<float> most(rows);
    vocabulary_max(part, shapes[r], most);
    for (std::size_t i = 0; i < rows; ++i) largest[i] = std::max(largest[i], most[i]);
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    std::vector<float> own_target(rows), own_sum(rows);
    vocabulary_sums(parts[r], targets, largest, shapes[r], own_target, own_sum);
    for (std::size_t i = 0; i < rows; ++i) target[i] += own_target[i], sum[i] += own_sum[i];
  }
  std::vector<float> losses(rows), gradient(rows * words);
  const LossSum whole = cross_entropy(logits, targets, {rows, words}, losses);
  cross_entropy_backward(logits, targets, {rows, words}, 0.5F, gradient);
  for (std::size_t r = 0; r < ranks; ++r) {
    std::vector<float> p(rows * here), g(rows * here);
    EXPECT_NEAR(vocabulary_softmax(parts[r], largest, target, sum, shapes[r], p), whole.sum, 1e-5);
    vocabulary_gradient(p, targets, 0.5F, shapes[r], g);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t c = 0; c < here; ++c) {
        const bool exists = c < shapes[r].valid;
        const float expected = exists ? gradient[i * words + r * here + c] : 0;
        EXPECT_NEAR(g[i * here + c], expected, 1e-6F) << r << " " << i << " " << c;
      }
  }
}

TEST(Positions, AreAddedInTurnAndSummedBack) {
  const std::vector<float> table = draws(4 * 3, 2);
  std::vector<float> y(6 * 3, 1.0F), gradient(4 * 3);
  add_positions(table, {6, 3}, 3, y);  // two sequences of three, a table for four
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(y[i], 1.0F + table[i]);
    EXPECT_EQ(y[i], y[i + 9]);
  }
  positions_backward(y, {6, 3}, 3, gradient);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(gradient[i], 2 * y[i]);
  for (std::size_t i = 9; i < 12; ++i) EXPECT_EQ(gradient[i], 0);
}

// Turning back is the transpose of turning, and undoes it; products of two turned vectors depend on
// how far apart they stand only.
TEST(Rotation, TurnsByTheDistance) {
  constexpr std::size_t rows = 6, width = 8, head = 4;
  std::vector<float> x(rows * width), y(rows * width), back(rows * width);
  const std::vector<float> one = draws(width, 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = one[i % width];
  Rotation turn{{rows, width}, head, rows};
  rotate(x, turn, y);
  for (std::size_t c = 0; c < width; ++c) EXPECT_EQ(y[c], x[c]);  // position 0
  const auto product = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t c = 0; c < head; ++c)
      sum += static_cast<double>(y[a * width + c]) * static_cast<double>(y[b * width + c]);
    return sum;
  };
  EXPECT_NEAR(product(1, 3), product(3, 5), 1e-5);
  EXPECT_GT(std::abs(product(1, 3) - product(1, 4)), 1e-3);
  turn.back = true;
  rotate(y, turn, back);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 1e-6F);
  // The first pair of a head, at position 1, turns by one radian.
  EXPECT_NEAR(y[width], x[0] * std::cos(1.0F) - x[2] * std::sin(1.0F), 1e-6F);
}

}  // namespace
}  // namespace rehearse::vocabulary_loss_test
