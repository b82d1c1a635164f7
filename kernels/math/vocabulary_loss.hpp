// Cross-entropy whose vocabulary is cut over ranks: each scores its own words, and three small sums
// join them (Shoeybi et al. 2019, section 3; Megatron's vocab_parallel_cross_entropy).
//
//   largest = max over ranks of largest_here                        all-reduce, one number a row
//   target  = x[target] - largest on the rank that has the word, 0 elsewhere          all-reduce
//   sum     = Σ e^(x - largest) over the words here                                   all-reduce
//   loss    = log(sum) - target,   p = e^(x - largest) / sum,   gradient = (p - [c == t]) · scale
//
// On one rank it is kernels/math/cross_entropy.hpp, in more passes. Words beyond the vocabulary
// (padding) have a probability and a gradient of zero. Sums over words in fp64, rounded to fp32
// once.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/math/rows.hpp"
#include "kernels/math/token.hpp"

namespace rehearse {

/// The words of one rank: columns 0 … width - 1 of the logits are words first … , of which the
/// first `valid` columns exist.
struct VocabularyPart {
  RowShape shape;
  std::size_t first = 0, valid = 0;

  /// The column of a word here, or shape.width.
  std::size_t column(Token word) const {
    const auto number = static_cast<std::int64_t>(word) - static_cast<std::int64_t>(first);
    return number >= 0 && static_cast<std::size_t>(number) < valid
               ? static_cast<std::size_t>(number)
               : shape.width;
  }
};

/// The largest logit of each row here; -infinity where no word is.
void vocabulary_max(std::span<const float> logits, const VocabularyPart& part,
                    std::span<float> largest);
void vocabulary_sums(std::span<const float> logits, std::span<const Token> targets,
                     std::span<const float> largest, const VocabularyPart& part,
                     std::span<float> target, std::span<float> sum);
/// Writes the probabilities here; returns the sum of the losses of all rows, in fp64 in their
/// order. Each rank of a group gets the same. Every row has a target.
double vocabulary_softmax(std::span<const float> logits, std::span<const float> largest,
                          std::span<const float> target, std::span<const float> sum,
                          const VocabularyPart& part, std::span<float> probabilities);
void vocabulary_gradient(std::span<const float> probabilities, std::span<const Token> targets,
                         float scale, const VocabularyPart& part, std::span<float> gradient);

}  // namespace rehearse
