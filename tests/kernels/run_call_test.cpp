// Kernels by name: each runs its reference on the operands in the order of the list.
#include "kernels/host/run_call.hpp"

#include <gtest/gtest.h>

#include <array>

#include "kernels/math/activation.hpp"
#include "kernels/math/norm.hpp"
#include "kernels/math/number_formats.hpp"
#include "sim/program/kernel_list.hpp"

namespace rehearse::run_call_test {
namespace {

template <class... Numbers>
void run(KernelCall call, Numbers&... operands) {
  const std::array<std::span<std::byte>, sizeof...(Numbers)> bytes{
      std::as_writable_bytes(std::span{operands})...};
  call.operands = sizeof...(Numbers);
  run_call(call, bytes);
}

TEST(RunCall, EveryKernelSaysWhatItDoesToItsOperands) {
  for (const std::string_view name : kernel_names()) {
    const Kernel kernel = *find_kernel(name);
    const std::string_view operands = entry_of(kernel).operands;
    EXPECT_FALSE(operands.empty()) << name;
    EXPECT_LE(operands.size(), 16u) << name;
    EXPECT_EQ(operands.find_first_not_of("rwm"), std::string_view::npos) << name;
    EXPECT_NE(operands.find_first_of("wm"), std::string_view::npos) << name;
  }
  EXPECT_FALSE(find_kernel("rely"));
}

TEST(RunCall, MultipliesWithStridesAndSums) {
  // C (in a matrix of width 3) = 2 A' B + C.
  std::array<float, 4> a{1, 2, 3, 4}, b{5, 6, 7, 8};
  std::array<float, 6> c{1, 0, 9, 0, 1, 9};
  run({.kernel = Kernel::gemm, .sizes = {2, 2, 2, 1, 0, 0, 0, 3}, .numbers = {2, 1}}, a, b, c);
  EXPECT_EQ(c, (std::array<float, 6>{53, 60, 9, 76, 89, 9}));
}

TEST(RunCall, NarrowOperandsAreWidenedAndRounded) {
  std::array<Bf16, 3> x{to_bf16(1.5F), to_bf16(-2), to_bf16(3)};
  std::array<float, 3> sum{1, 1, 0x1p-20F};
  run({.kernel = Kernel::add_into, .narrow = Precision::bf16, .narrow_operands = 1}, x, sum);
  EXPECT_EQ(sum, (std::array<float, 3>{2.5F, -1, 3 + 0x1p-20F}));
  run({.kernel = Kernel::scale,
       .narrow = Precision::bf16,
       .narrow_operands = 2,
       .numbers = {1.0 / 3}},
      sum, x);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(x[i], to_bf16(sum[i] * static_cast<float>(1.0 / 3))) << i;
  // What is only read keeps its bytes: somebody else may be reading it, too.
  std::array<Fp16, 2> read{Fp16{0x7c01}, Fp16{0x3c00}};
  std::array<float, 2> y{};
  run({.kernel = Kernel::relu, .narrow = Precision::fp16, .narrow_operands = 1}, read, y);
  EXPECT_EQ(read[0], Fp16{0x7c01});
  EXPECT_EQ(y[1], 1.0F);
}

TEST(RunCall, HalvesOfANormsBackwardPassAreItsWhole) {
  constexpr RowShape shape{2, 3};
  std::array<float, 6> x{1, 2, 4, -1, 0, 3}, dy{1, -1, 2, 0.5F, 1, 1}, y{}, dx{}, whole{};
  std::array<float, 3> weight{1, 2, 3}, bias{}, dw{1, 1, 1}, db{}, whole_dw{1, 1, 1}, whole_db{};
  std::array<float, 2> mean{}, rate{};
  const KernelCall norm{.kernel = Kernel::layer_norm, .sizes = {2, 3}, .numbers = {1e-5}};
  run(norm, x, weight, bias, y, mean, rate);
  run({.kernel = Kernel::layer_norm_backward, .sizes = {2, 3}}, dy, x, weight, mean, rate, dx);
  run({.kernel = Kernel::layer_norm_weights, .sizes = {2, 3}}, dy, x, mean, rate, dw, db);
  layer_norm_backward(dy, x, weight, shape, {mean, rate}, whole, whole_dw, whole_db);
  EXPECT_EQ(dx, whole);
  EXPECT_EQ(dw, whole_dw);
  EXPECT_EQ(db, whole_db);
  run({.kernel = Kernel::rms_norm, .sizes = {2, 3}, .numbers = {1e-5}}, x, weight, y, rate);
  dw = whole_dw = {1, 2, 3};
  run({.kernel = Kernel::rms_norm_backward, .sizes = {2, 3}}, dy, x, weight, rate, dx);
  run({.kernel = Kernel::rms_norm_weights, .sizes = {2, 3}}, dy, x, rate, dw);
  rms_norm_backward(dy, x, weight, shape, rate, whole, whole_dw);
  EXPECT_EQ(dx, whole);
  EXPECT_EQ(dw, whole_dw);
}

TEST(RunCall, KernelsOfOneOpTakeTheirOperandsInTurn) {
  std::array<float, 2> x{-1, 2}, y{};
  const std::array calls{KernelCall{.kernel = Kernel::relu, .operands = 2},
                         KernelCall{.kernel = Kernel::scale, .operands = 2, .numbers = {3}}};
  const auto bytes = [](auto& numbers) -> std::span<std::byte> {
    return std::as_writable_bytes(std::span{numbers});
  };
  const std::array operands{bytes(x), bytes(y), bytes(y), bytes(x)};
  run_calls(calls, operands);
  EXPECT_EQ(x, (std::array<float, 2>{0, 6}));
}

TEST(Relu, CutsBelowZeroAndHandsOnNan) {
  const std::array<float, 4> x{-1, 0, 2, std::nanf("")}, dy{5, 6, 7, 8};
  std::array<float, 4> y{}, dx{};
  relu(x, y);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[2], 2);
  EXPECT_TRUE(std::isnan(y[3]));
  relu_backward(dy, y, dx);
  EXPECT_EQ(dx, (std::array<float, 4>{0, 0, 7, 0}));
}

}  // namespace
}  // namespace rehearse::run_call_test
