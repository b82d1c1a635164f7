// Rows by token, and gradients summed back in the order of positions.
#include "kernels/math/embedding.hpp"

#include "tests/kernels/numbers.hpp"

namespace rehearse::embedding_test {
namespace {

std::vector<Token> random_tokens(SeededNumbers& numbers, std::size_t count,
                                 std::size_t vocabulary) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<Token>(numbers.below(vocabulary)));
  return tokens;
}

TEST(Embedding, ForwardAndBackward) {
  SeededNumbers numbers(51);
  for (const RowShape table_shape : {RowShape{1, 1}, {3, 0}, {5, 7}, {11, 3}}) {
    for (const std::size_t positions : {0U, 1U, 9U}) {
      const auto tokens = random_tokens(numbers, positions, table_shape.rows);
      const Floats table = numbers.floats(table_shape.size());
      const std::size_t size = positions * table_shape.width;
      const Floats dy = numbers.floats(size);
      const auto gather = [&](const Doubles& at) {
        Doubles y;
        for (const Token token : tokens)
          for (std::size_t c = 0; c < table_shape.width; ++c)
            y.push_back(at[static_cast<std::size_t>(token) * table_shape.width + c]);
        return y;
      };
      Floats y(size), gradient(table.size());
      embedding(table, table_shape, tokens, y);
      EXPECT_EQ(widen(y), gather(widen(table)));
      embedding_backward(dy, tokens, gradient, table_shape);
      expect_close(
          gradient,
          numeric_gradient([&](const Doubles& at) { return dot(gather(at), dy); }, widen(table)),
          1e-6);
    }
  }
}

TEST(Embedding, AnyCutOfThePositionsGivesTheSameBits) {
  SeededNumbers numbers(52);
  const RowShape shape{4, 3};
  const auto tokens = random_tokens(numbers, 500, 4);
  const Floats dy = numbers.floats(1500);
  Floats whole = numbers.floats(12), parts = whole;
  embedding_backward(dy, tokens, whole, shape);
  for (std::size_t first = 0; first < 500;) {
    const std::size_t count = std::min(500 - first, numbers.below(40));
    embedding_backward(std::span{dy}.subspan(first * 3, count * 3),
                       std::span{tokens}.subspan(first, count), parts, shape);
    first += count;
  }
  EXPECT_EQ(bits(parts), bits(whole));
}

TEST(Embedding, ATokenOutsideIsOurMistake) {
  const Floats table(6);
  Floats y(3);
  EXPECT_THROW(embedding(table, {2, 3}, std::vector{Token{2}}, y), std::logic_error);
  EXPECT_THROW(embedding(table, {2, 3}, std::vector{ignored_token}, y), std::logic_error);
}

}  // namespace
}  // namespace rehearse::embedding_test
