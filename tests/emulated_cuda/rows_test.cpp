// Kernels that sum over rows or columns, against their CPU references: fp32 trees against fp64 sums
// in order, so with a tolerance; where nothing is summed, bits.
#include "kernels/math/activation.hpp"
#include "kernels/math/cross_entropy.hpp"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/embedding.hpp"
#include "kernels/math/norm.hpp"
#include "kernels/math/softmax.hpp"
#include "tests/emulated_cuda/arrays.hpp"

namespace rehearse::rows_test {
namespace {

class Rows : public OnGpu {};

std::vector<RowShape> odd_shapes() {
  std::vector<RowShape> all = row_shapes();
  all.insert(all.end(), {{3, 257}, {2, 700}, {41, 33}});  // wider than a block, longer than a tile
  return all;
}

TEST_F(Rows, ColumnSums) {
  SeededNumbers numbers(1);
  for (const RowShape shape : odd_shapes()) {
    const Floats x = numbers.floats(shape.size());
    Floats sums = numbers.floats(shape.width);
    const DeviceArray<float> dx{x}, dsums{sums};
    add_column_sums(stream, dx, shape, dsums);
    add_column_sums(x, shape, sums);
    expect_close(dsums.values(), widen(sums), 1e-7);
  }
}

TEST_F(Rows, BiasGelu) {
  SeededNumbers numbers(2);
  for (const RowShape shape : odd_shapes())
    for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
      const Floats x = numbers.floats(shape.size(), -6, 6), bias = numbers.floats(shape.width);
      const Floats dy = numbers.floats(shape.size());
      Floats y(shape.size()), dx(shape.size()), dbias = numbers.floats(shape.width);
      const DeviceArray<float> gx{x}, gbias{bias}, gdy{dy}, gy{y}, gdx{dx}, gdbias{dbias};
      bias_gelu(x, bias, shape, form, y);
      bias_gelu_backward(dy, x, bias, shape, form, dx, dbias);
      bias_gelu(stream, gx, gbias, shape, form, gy);
      bias_gelu_backward(stream, gdy, gx, gbias, shape, form, gdx, gdbias);
      expect_close(gy.values(), widen(y), 2e-6);
      expect_close(gdx.values(), widen(dx), 4e-6);
      expect_close(gdbias.values(), widen(dbias), 1e-5);
      add_bias(x, bias, shape, y);
      add_bias(stream, gx, gbias, shape, gy);
      EXPECT_EQ(bits(gy.values()), bits(y));
    }
}

TEST_F(Rows, ReluSiluAndSwiglu) {
  SeededNumbers numbers(3);
  for (const std::size_t n : lengths()) {
    const Floats x = numbers.floats(n, -8, 8), up = numbers.floats(n), dy = numbers.floats(n);
    Floats y(n), dx(n), dup(n);
    const DeviceArray<float> gx{x}, gup{up}, gdy{dy}, gy{n}, gdx{n}, gdup{n};
    relu(x, y);
    relu(stream, gx, gy);
    EXPECT_EQ(bits(gy.values()), bits(y));
    relu_backward(dy, y, dx);
    relu_backward(stream, gdy, gy, gdx);
    EXPECT_EQ(bits(gdx.values()), bits(dx));
    silu(x, y);
    silu(stream, gx, gy);
    expect_close(gy.values(), widen(y), 1e-6);
    silu_backward(dy, x, dx);
    silu_backward(stream, gdy, gx, gdx);
    expect_close(gdx.values(), widen(dx), 2e-6);
    swiglu(x, up, y);
    swiglu(stream, gx, gup, gy);
    expect_close(gy.values(), widen(y), 1e-6);
    swiglu_backward(dy, x, up, dx, dup);
    swiglu_backward(stream, gdy, gx, gup, gdx, gdup);
    expect_close(gdx.values(), widen(dx), 2e-6);
    expect_close(gdup.values(), widen(dup), 2e-6);
  }
}

TEST_F(Rows, LayerNorm) {
  SeededNumbers numbers(4);
  for (const RowShape shape : odd_shapes()) {
    if (shape.width == 1) continue;  // all mean: what rounding leaves is magnified by 1/√epsilon
    const Floats x = numbers.floats(shape.size()), weight = numbers.floats(shape.width);
    const Floats bias = numbers.floats(shape.width), dy = numbers.floats(shape.size());
    Floats y(shape.size()), mean(shape.rows), rate(shape.rows), dx(shape.size());
    Floats dw = numbers.floats(shape.width), db = dw;
    const DeviceArray<float> gx{x}, gw{weight}, gb{bias}, gdy{dy}, gy{y}, gm{mean}, gr{rate},
        gdx{dx};
    const DeviceArray<float> gdw{dw}, gdb{db};
    layer_norm(x, weight, bias, shape, 1e-5F, y, {mean, rate});
    layer_norm_backward(dy, x, weight, shape, {mean, rate}, dx, dw, db);
    layer_norm(stream, gx, gw, gb, shape, 1e-5F, gy, {gm, gr});
    layer_norm_backward(stream, gdy, gx, gw, shape, {gm, gr}, gdx, gdw, gdb);
    expect_close(gy.values(), widen(y), 1e-5);
    if (shape.width > 0) expect_close(gm.values(), widen(mean), 1e-6);
    if (shape.width > 0) expect_close(gr.values(), widen(rate), 1e-5);
    expect_close(gdx.values(), widen(dx), 1e-4);
    expect_close(gdw.values(), widen(dw), 1e-5);
    expect_close(gdb.values(), widen(db), 1e-6);
  }
}

TEST_F(Rows, LayerNormBackwardInPlace) {
  SeededNumbers numbers(5);
  const RowShape shape{5, 300};
  const Floats x = numbers.floats(shape.size()), weight = numbers.floats(shape.width);
  const Floats dy = numbers.floats(shape.size()), mean(5, 0.1F), rate(5, 0.9F), zeros(300);
  const DeviceArray<float> gx{x}, gw{weight}, gdy{dy}, gm{mean}, gr{rate}, gdx{shape.size()};
  const DeviceArray<float> dw{zeros}, db{zeros}, dw_in_place{zeros}, db_in_place{zeros};
  layer_norm_backward(stream, gdy, gx, gw, shape, {gm, gr}, gdx, dw, db);
  const Floats apart = gdx.values();
  layer_norm_backward(stream, gdy, gx, gw, shape, {gm, gr}, gdy, dw_in_place, db_in_place);
  EXPECT_EQ(bits(gdy.values()), bits(apart));
  EXPECT_EQ(bits(dw_in_place.values()), bits(dw.values()));
}

TEST_F(Rows, RmsNorm) {
  SeededNumbers numbers(6);
  for (const RowShape shape : odd_shapes()) {
    const Floats x = numbers.floats(shape.size()), weight = numbers.floats(shape.width);
    const Floats dy = numbers.floats(shape.size());
    Floats y(shape.size()), rate(shape.rows), dx(shape.size()), dw = numbers.floats(shape.width);
    const DeviceArray<float> gx{x}, gw{weight}, gdy{dy}, gy{y}, gr{rate}, gdx{dx}, gdw{dw};
    rms_norm(x, weight, shape, 1e-5F, y, rate);
    rms_norm_backward(dy, x, weight, shape, rate, dx, dw);
    rms_norm(stream, gx, gw, shape, 1e-5F, gy, gr);
    rms_norm_backward(stream, gdy, gx, gw, shape, gr, gdx, gdw);
    expect_close(gy.values(), widen(y), 1e-5);
    expect_close(gdx.values(), widen(dx), 1e-4);
    expect_close(gdw.values(), widen(dw), 1e-5);
  }
}

TEST_F(Rows, Softmax) {
  SeededNumbers numbers(7);
  for (const RowShape shape : odd_shapes()) {
    Floats x = numbers.floats(shape.size(), -30, 30);
    const Floats dy = numbers.floats(shape.size());
    if (shape.rows > 1) std::fill_n(x.begin(), shape.width, -INFINITY);  // all masked
    Floats y(shape.size()), dx(shape.size());
    const DeviceArray<float> gx{x}, gdy{dy}, gy{y}, gdx{dx};
    softmax(x, shape, y);
    softmax_backward(dy, y, shape, dx);
    softmax(stream, gx, shape, gy);
    softmax_backward(stream, gdy, gy, shape, gdx);
    expect_close(gy.values(), widen(y), 2e-6);
    expect_close(gdx.values(), widen(dx), 4e-6);
  }
}

TEST_F(Rows, SoftmaxHandsANanOn) {
  for (const std::size_t at : {0, 100, 299}) {
    Floats x(300, -INFINITY);
    x[at] = NAN;
    const DeviceArray<float> gx{x};
    softmax(stream, gx, {1, 300}, gx);
    for (const float value : gx.values()) ASSERT_TRUE(std::isnan(value));
  }
}

TEST_F(Rows, CrossEntropy) {
  SeededNumbers numbers(8);
  for (const RowShape shape : odd_shapes()) {
    if (shape.width == 0) continue;
    const Floats logits = numbers.floats(shape.size(), -20, 20);
    std::vector<Token> targets(shape.rows);
    for (Token& target : targets)
      target =
          numbers.below(4) == 0 ? ignored_token : static_cast<Token>(numbers.below(shape.width));
    Floats losses(shape.rows), gradient(shape.size());
    const DeviceArray<float> glogits{logits}, glosses{losses}, ggradient{gradient};
    const DeviceArray<Token> gtargets{targets};
    const DeviceArray<LossSum> gtotal{1};
    const LossSum total = cross_entropy(logits, targets, shape, losses);
    cross_entropy_backward(logits, targets, shape, 0.125F, gradient);
    cross_entropy(stream, glogits, gtargets, shape, glosses, gtotal.data());
    cross_entropy_backward(stream, glogits, gtargets, shape, 0.125F, ggradient);
    expect_close(glosses.values(), widen(losses), 2e-6);
    expect_close(ggradient.values(), widen(gradient), 2e-6);
    const LossSum got = gtotal.values()[0];
    EXPECT_EQ(got.counted, total.counted);
    EXPECT_NEAR(got.sum, total.sum, 2e-6 * (1 + total.sum));
  }
}

TEST_F(Rows, Embedding) {
  SeededNumbers numbers(9);
  for (const RowShape table_shape : {RowShape{1, 1}, RowShape{7, 5}, RowShape{300, 33}}) {
    for (const std::size_t positions : {0, 1, 40, 700}) {
      const Floats table = numbers.floats(table_shape.size());
      std::vector<Token> tokens(positions);
      for (Token& token : tokens) token = static_cast<Token>(numbers.below(table_shape.rows));
      const std::size_t size = positions * table_shape.width;
      const Floats dy = numbers.floats(size);
      Floats y(size), gradient = numbers.floats(table_shape.size());
      const DeviceArray<float> gtable{table}, gdy{dy}, gy{size}, ggradient{gradient};
      const DeviceArray<Token> gtokens{tokens};
      embedding(table, table_shape, tokens, y);
      embedding_backward(dy, tokens, gradient, table_shape);
      embedding(stream, gtable, table_shape, gtokens, gy);
      embedding_backward(stream, gdy, gtokens, ggradient, table_shape);
      EXPECT_EQ(bits(gy.values()), bits(y));
      EXPECT_EQ(bits(ggradient.values()), bits(gradient));  // summed in the order of positions
    }
  }
}

}  // namespace
}  // namespace rehearse::rows_test
