// Attention in parts is attention at once, forward and backward.
#include "kernels/math/attention_parts.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/math/philox.hpp"

namespace rehearse::attention_parts_test {
namespace {

std::vector<float> draws(std::size_t count, std::uint64_t stream) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(RandomWords{1, stream}.word(i)) * 0x1p-31F - 1;
  return values;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5F) << i;
}

TEST(AttentionInParts, IsAttention) {
  for (const bool causal : {false, true})
    for (const std::size_t key_heads : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
      const AttentionShape shape{2, 5, 5, 4, key_heads, 3, causal, 0.7F};
      const std::size_t pairs = shape.score_rows() * shape.keys;
      const auto q = draws(shape.query_numbers(), 1), k = draws(shape.key_numbers(), 2),
                 v = draws(shape.key_numbers(), 3), dy = draws(shape.query_numbers(), 4);
      std::vector<float> y(q.size()), sums(shape.score_rows()), dq(q.size()), dk(k.size()),
          dv(k.size());
      attention(shape, {q, k, v}, y, sums);
      attention_backward(shape, {q, k, v}, y, sums, dy, {dq, dk, dv});
      std::vector<float> scores(pairs), p(pairs), dp(pairs), ds(pairs);
      std::vector<float> y2(q.size()), dq2(q.size()), dk2(k.size()), dv2(k.size());
      attention_pairs(shape, q, k, scores);
      attention_softmax(shape, scores, p);
      attention_over_keys(shape, p, v, y2);
      attention_pairs(shape, dy, v, dp);
      attention_over_queries(shape, p, dy, dv2);
      attention_softmax_backward(shape, p, dp, ds);
      attention_over_keys(shape, ds, k, dq2);
      attention_over_queries(shape, ds, q, dk2);
      expect_near(y2, y);
      expect_near(dq2, dq);
      expect_near(dk2, dk);
      expect_near(dv2, dv);
    }
}

}  // namespace
}  // namespace rehearse::attention_parts_test
