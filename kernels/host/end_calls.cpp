// Calls of the kernels at the two ends of a model: words, positions, losses.
#include <algorithm>
#include <vector>

#include "kernels/host/call_groups.hpp"
#include "kernels/math/cross_entropy.hpp"
#include "kernels/math/embedding.hpp"
#include "kernels/math/positions.hpp"
#include "kernels/math/step_state.hpp"
#include "kernels/math/vocabulary_loss.hpp"

namespace rehearse {

namespace {

float scaled(const CallOperands& x, std::size_t state) {
  return static_cast<float>(x.number(0) * x.as<StepState>(state)[0].loss_scale);
}

// Words of other ranks are zeros, and have no gradient here.
void run_embedding(CallOperands& x, bool backward) {
  const RowShape table{x.whole(0), x.whole(1)};
  const auto first = static_cast<std::int64_t>(x.whole(2));
  const std::span<const Token> tokens = x.as<Token>(1);
  const std::span<float> rows = x[backward ? 0 : 2];
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int64_t word = static_cast<std::int64_t>(tokens[i]) - first;
    const std::span<float> row = rows.subspan(i * table.width, table.width);
    const bool is_here = word >= 0 && static_cast<std::size_t>(word) < table.rows;
    if (!is_here && !backward) std::ranges::fill(row, 0.0F);
    if (!is_here) continue;
    const Token here{static_cast<std::int32_t>(word)};
    if (backward)
      embedding_backward(row, {&here, 1}, x[2], table);
    else
      embedding(x[0], table, {&here, 1}, row);
  }
}

Rotation rotation(const CallOperands& x) {
  return {x.rows(), x.whole(2), x.whole(3), x.number(0), x.flag(4)};
}

// Logits that were gathered lie part behind part: [part][row][class of the part].
std::vector<float> in_rows(CallOperands& x) {
  const std::size_t rows = x.whole(0), classes = x.whole(1), parts = x.whole(2);
  const std::size_t width = classes / parts;
  std::vector<float> logits(rows * classes);
  for (std::size_t p = 0; p < parts; ++p)
    for (std::size_t r = 0; r < rows; ++r)
      std::ranges::copy(x[0].subspan((p * rows + r) * width, width),
                        logits.begin() + static_cast<std::ptrdiff_t>(r * classes + p * width));
  return logits;
}

void run_class_loss(CallOperands& x) {
  std::vector<float> losses(x.whole(0));
  const RowShape shape{x.whole(0), x.whole(1)};
  x.as<double>(2)[0] = cross_entropy(in_rows(x), x.as<Token>(1), shape, losses).sum;
}

void run_class_loss_backward(CallOperands& x) {
  const RowShape shape{x.whole(0), x.whole(1)};
  std::vector<float> gradient = in_rows(x);
  cross_entropy_backward(gradient, x.as<Token>(1), shape, scaled(x, 2), gradient);
  const std::size_t first = x.whole(3), count = x.whole(4);
  for (std::size_t r = 0; r < shape.rows; ++r)
    std::ranges::copy(std::span{gradient}.subspan(r * shape.width + first, count),
                      x[3].subspan(r * count, count).begin());
}

VocabularyPart vocabulary(const CallOperands& x) { return {x.rows(), x.whole(2), x.whole(3)}; }

}  // namespace

void run_end(Kernel kernel, CallOperands& x) {
  switch (kernel) {
    case Kernel::embedding:
      return run_embedding(x, false);
    case Kernel::embedding_backward:
      return run_embedding(x, true);
    case Kernel::add_positions:
      return add_positions(x[0], x.rows(), x.whole(2), x[1]);
    case Kernel::positions_backward:
      return positions_backward(x[0], x.rows(), x.whole(2), x[1]);
    case Kernel::rotate:
      return rotate(x[0], rotation(x), x[1]);
    case Kernel::class_loss:
      return run_class_loss(x);
    case Kernel::class_loss_backward:
      return run_class_loss_backward(x);
    case Kernel::vocabulary_max:
      return vocabulary_max(x[0], vocabulary(x), x[1]);
    case Kernel::vocabulary_sums:
      return vocabulary_sums(x[0], x.as<Token>(1), x[2], vocabulary(x), x[3], x[4]);
    case Kernel::vocabulary_softmax:
      x.as<double>(5)[0] = vocabulary_softmax(x[0], x[1], x[2], x[3], vocabulary(x), x[4]);
      return;
    case Kernel::vocabulary_gradient:
      return vocabulary_gradient(x[0], x.as<Token>(1), scaled(x, 2), vocabulary(x), x[3]);
    default:
      ASSERT(false);
  }
}

}  // namespace rehearse
