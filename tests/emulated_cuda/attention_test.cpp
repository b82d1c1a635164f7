// Attention in tiles against the CPU reference: every edge of a tile, grouped heads, causal or not.
#include "kernels/math/attention.hpp"

#include "kernels/math/cuda_kernels.hpp"
#include "tests/emulated_cuda/arrays.hpp"

namespace rehearse::attention_test {
namespace {

class TiledAttention : public OnGpu {
 protected:
  void expect_same(const AttentionShape& s, std::uint64_t seed) {
    SeededNumbers numbers(seed);
    const Floats q = numbers.floats(s.query_numbers()), k = numbers.floats(s.key_numbers());
    const Floats v = numbers.floats(s.key_numbers()), dy = numbers.floats(s.query_numbers());
    Floats y(s.query_numbers()), sums(s.score_rows()), dq(s.query_numbers());
    Floats dk(s.key_numbers()), dv(s.key_numbers());
    attention(s, {q, k, v}, y, sums);
    attention_backward(s, {q, k, v}, y, sums, dy, {dq, dk, dv});
    const DeviceArray<float> gq{q}, gk{k}, gv{v}, gdy{dy}, gy{y.size()}, gsums{sums.size()};
    const DeviceArray<float> gdots{sums.size()}, gdq{dq.size()}, gdk{dk.size()}, gdv{dv.size()};
    attention(stream, s, {gq, gk, gv}, gy, gsums);
    attention_backward(stream, s, {gq, gk, gv}, gy, gsums, gdy, gdots, {gdq, gdk, gdv});
    expect_close(gy.values(), widen(y), 5e-6);
    const Floats got_sums = gsums.values();
    for (std::size_t i = 0; i < sums.size(); ++i)
      ASSERT_TRUE(got_sums[i] == sums[i] || std::abs(got_sums[i] - sums[i]) < 2e-5F);
    expect_close(gdq.values(), widen(dq), 2e-5);
    expect_close(gdk.values(), widen(dk), 2e-5);
    expect_close(gdv.values(), widen(dv), 2e-5);
  }
};

TEST_F(TiledAttention, SmallAndOddShapes) {
  std::vector<AttentionShape> shapes{
      {.batch = 1, .queries = 1, .keys = 1, .heads = 1, .key_heads = 1, .width = 1},
      {.batch = 1, .queries = 0, .keys = 3, .heads = 1, .key_heads = 1, .width = 2},
      {.batch = 1, .queries = 3, .keys = 0, .heads = 1, .key_heads = 1, .width = 2},
      {.batch = 2, .queries = 5, .keys = 7, .heads = 4, .key_heads = 2, .width = 3, .scale = 0.5F},
      {.batch = 1, .queries = 9, .keys = 4, .heads = 3, .key_heads = 1, .width = 33, .scale = 0.2F},
      {.batch = 1,
       .queries = 3,
       .keys = 40,
       .heads = 1,
       .key_heads = 1,
       .width = 100,
       .scale = 0.1F}};
  SeededNumbers numbers(1);
  for (int i = 0; i < 4; ++i) {
    const std::size_t key_heads = 1 + numbers.below(2);
    shapes.push_back({.batch = 1 + numbers.below(2),
                      .queries = 1 + numbers.below(40),
                      .keys = 1 + numbers.below(70),
                      .heads = key_heads * (1 + numbers.below(2)),
                      .key_heads = key_heads,
                      .width = 1 + numbers.below(64),
                      .scale = 0.2F});
  }
  for (AttentionShape shape : shapes)
    for (const bool causal : {false, true}) {
      shape.causal = causal;
      expect_same(shape, 2);
    }
}

TEST_F(TiledAttention, MoreThanOneTileOfQueriesAndKeys) {
  for (const bool causal : {false, true})
    expect_same({.batch = 1,
                 .queries = 67,
                 .keys = 65,
                 .heads = 2,
                 .key_heads = 1,
                 .width = 8,
                 .causal = causal,
                 .scale = 0.35F},
                3);
}

TEST_F(TiledAttention, SurvivesGreatScores) {
  const AttentionShape s{
      .batch = 1, .queries = 2, .keys = 2, .heads = 1, .key_heads = 1, .width = 1};
  const Floats q{1e10F, -1e10F}, v{0.25F, -3};
  const DeviceArray<float> gq{q}, gv{v}, gy{2}, gsums{2};
  attention(stream, s, {gq, gq, gv}, gy, gsums);
  EXPECT_EQ(gy.values(), v);
}

}  // namespace
}  // namespace rehearse::attention_test
