// Row by row, word by word.
#include "kernels/math/vocabulary_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

double wide(float value) { return static_cast<double>(value); }

}  // namespace

void vocabulary_max(std::span<const float> logits, const VocabularyPart& part,
                    std::span<float> largest) {
  ASSERT(logits.size() == part.shape.size() && largest.size() == part.shape.rows);
  for (std::size_t r = 0; r < part.shape.rows; ++r) {
    largest[r] = -std::numeric_limits<float>::infinity();
    for (const float x : logits.subspan(r * part.shape.width, part.valid))
      largest[r] = std::max(largest[r], x);
  }
}

void vocabulary_sums(std::span<const float> logits, std::span<const Token> targets,
                     std::span<const float> largest, const VocabularyPart& part,
                     std::span<float> target, std::span<float> sum) {
  ASSERT(logits.size() == part.shape.size() && targets.size() == part.shape.rows);
  ASSERT(target.size() == part.shape.rows && sum.size() == part.shape.rows);
  for (std::size_t r = 0; r < part.shape.rows; ++r) {
    const auto row = logits.subspan(r * part.shape.width, part.shape.width);
    const std::size_t column = part.column(targets[r]);
    target[r] = column < part.shape.width ? row[column] - largest[r] : 0;
    double powers = 0;
    for (const float x : row.first(part.valid)) powers += std::exp(wide(x) - wide(largest[r]));
    sum[r] = static_cast<float>(powers);
  }
}

double vocabulary_softmax(std::span<const float> logits, std::span<const float> largest,
                          std::span<const float> target, std::span<const float> sum,
                          const VocabularyPart& part, std::span<float> probabilities) {
  ASSERT(logits.size() == part.shape.size() && probabilities.size() == part.shape.size());
  ASSERT(target.size() == part.shape.rows && sum.size() == part.shape.rows);
  double losses = 0;
  for (std::size_t r = 0; r < part.shape.rows; ++r) {
    const std::size_t begin = r * part.shape.width;
    for (std::size_t c = 0; c < part.shape.width; ++c)
      probabilities[begin + c] =
          c < part.valid ? static_cast<float>(std::exp(wide(logits[begin + c]) - wide(largest[r])) /
                                              wide(sum[r]))
                         : 0;
    losses += std::log(wide(sum[r])) - wide(target[r]);
  }
  return losses;
}

void vocabulary_gradient(std::span<const float> probabilities, std::span<const Token> targets,
                         float scale, const VocabularyPart& part, std::span<float> gradient) {
  ASSERT(probabilities.size() == part.shape.size() && gradient.size() == part.shape.size());
  ASSERT(targets.size() == part.shape.rows);
  for (std::size_t r = 0; r < part.shape.rows; ++r) {
    const std::size_t begin = r * part.shape.width, column = part.column(targets[r]);
    for (std::size_t c = 0; c < part.shape.width; ++c)
      gradient[begin + c] = (probabilities[begin + c] - (c == column ? 1.0F : 0.0F)) * scale;
  }
}

}  // namespace rehearse
