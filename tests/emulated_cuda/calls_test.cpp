// Computes of a Program on an emulated GPU: kernels on random operands, as fp32 and as 16-bit
// numbers, and optimizers in the middle of a training, give what kernels/host/run_call.cpp gives on
// the host. What reads tokens and packets is tested by whole trainings (equivalence_test.cpp).
#include <cmath>
#include <cstring>

#include "kernels/cuda/cuda_executor.hpp"
#include "kernels/host/run_call.hpp"
#include "kernels/math/number_formats.hpp"
#include "kernels/math/step_state.hpp"
#include "sim/program/kernel_list.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/kernels/numbers.hpp"

namespace rehearse::calls_test {
namespace {

struct Case {
  KernelCall call;
  std::vector<std::size_t> numbers;  // of each operand
};

KernelCall call_of(Kernel kernel, std::vector<std::int64_t> sizes,
                   std::vector<double> numbers = {}) {
  KernelCall call;
  call.kernel = kernel;
  call.operands = static_cast<std::uint8_t>(entry_of(kernel).operands.size());
  std::ranges::copy(sizes, call.sizes.begin());
  std::ranges::copy(numbers, call.numbers.begin());
  return call;
}

constexpr std::int64_t rows = 5, width = 37;
constexpr std::size_t all = rows * width, wide = width, tall = rows;

std::vector<Case> cases() {
  const std::vector<std::int64_t> matrix{rows, width};
  const std::vector<std::int64_t> heads{2, 5, 7, 4, 2, 6, 1};
  const std::size_t q = 2 * 5 * 4 * 6, k = 2 * 7 * 2 * 6, sums = 2 * 4 * 5;
  return {
      {call_of(Kernel::gemm, {5, 6, 7}, {0.5, 0}), {35, 42, 30}},
      {call_of(Kernel::gemm, {5, 6, 7, 1, 0, 8, 9, 7}, {1, 1}), {56, 63, 35}},
      {call_of(Kernel::gemm, {5, 6, 7, 0, 1}, {1, 0.25}), {35, 42, 30}},
      {call_of(Kernel::add, {}), {77, 77, 77}},
      {call_of(Kernel::add_into, {}), {77, 77}},
      {call_of(Kernel::scale, {}, {1.75}), {77, 77}},
      {call_of(Kernel::copy, {}), {77, 77}},
      {call_of(Kernel::zero, {}), {77}},
      {call_of(Kernel::add_bias, matrix), {all, wide, all}},
      {call_of(Kernel::add_column_sums, matrix), {all, wide}},
      {call_of(Kernel::relu, {}), {77, 77}},
      {call_of(Kernel::relu_backward, {}), {77, 77, 77}},
      {call_of(Kernel::bias_gelu, {rows, width, 1}), {all, wide, all}},
      {call_of(Kernel::bias_gelu_backward, {rows, width, 0}), {all, all, wide, all}},
      {call_of(Kernel::swiglu, {}), {77, 77, 77}},
      {call_of(Kernel::swiglu_backward, {}), {77, 77, 77, 77, 77}},
      {call_of(Kernel::layer_norm, matrix, {1e-5}), {all, wide, wide, all, tall, tall}},
      {call_of(Kernel::layer_norm_backward, matrix), {all, all, wide, tall, tall, all}},
      {call_of(Kernel::layer_norm_weights, matrix), {all, all, tall, tall, wide, wide}},
      {call_of(Kernel::rms_norm, matrix, {1e-5}), {all, wide, all, tall}},
      {call_of(Kernel::rms_norm_backward, matrix), {all, all, wide, tall, all}},
      {call_of(Kernel::rms_norm_weights, matrix), {all, all, tall, wide}},
      {call_of(Kernel::attention, heads, {0.4}), {q, k, k, q, sums}},
      {call_of(Kernel::attention_backward, heads, {0.4}), {q, k, k, q, sums, q, q, k, k}},
  };
}

using Operands = std::vector<std::vector<std::byte>>;

// A buffer for each operand, all on rank 0.
Operands run_on_gpu(const KernelCall& call, const Operands& operands) {
  emulated_cuda::reset({.devices = 1});
  Program program;
  std::vector<Access> accesses;
  for (std::size_t i = 0; i < operands.size(); ++i)
    accesses.push_back(
        {{static_cast<Buffer>(i), Bytes{0}, Bytes{static_cast<std::int64_t>(operands[i].size())}},
         writes_operand(call.kernel, i)});
  program.add_compute(Rank{0}, Stream::compute, {program.name("kernel")}, {}, {}, accesses,
                      {&call, 1});
  Operands results;
  {
    const CudaMemory memory{program, {0}};
    for (std::size_t i = 0; i < operands.size(); ++i)
      memory.load(Rank{0}, accesses[i].slice, operands[i]);
    CudaExecutor{memory}.run(program);
    for (const Access& access : accesses) results.push_back(memory.read(Rank{0}, access.slice));
  }
  EXPECT_EQ(emulated_cuda::complaints(), std::vector<std::string>{});
  EXPECT_EQ(emulated_cuda::leaks(), "");
  return results;
}

std::vector<std::byte> bytes_of_numbers(const Floats& values, bool is_narrow) {
  std::vector<std::byte> bytes(values.size() * (is_narrow ? 2 : 4));
  if (is_narrow)
    cast(values, std::span<Bf16>{reinterpret_cast<Bf16*>(bytes.data()), values.size()});
  else if (!bytes.empty())
    std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Floats numbers_of(const std::vector<std::byte>& bytes, bool is_narrow) {
  Floats values(bytes.size() / (is_narrow ? 2 : 4));
  if (is_narrow)
    cast(std::span<const Bf16>{reinterpret_cast<const Bf16*>(bytes.data()), values.size()}, values);
  else if (!bytes.empty())
    std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void expect_same(Case it, std::uint16_t narrow) {
  SCOPED_TRACE(std::string(entry_of(it.call.kernel).name) + ", narrow operands " +
               std::to_string(narrow));
  it.call.narrow = narrow == 0 ? Precision::fp32 : Precision::bf16;
  it.call.narrow_operands = narrow;
  SeededNumbers numbers(7);
  Operands operands;
  for (std::size_t i = 0; i < it.numbers.size(); ++i)
    operands.push_back(
        bytes_of_numbers(numbers.floats(it.numbers[i], 0.1, 1), (narrow >> i & 1) != 0));
  const Operands got = run_on_gpu(it.call, operands);
  std::vector<std::span<std::byte>> spans{operands.begin(), operands.end()};
  run_call(it.call, spans);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_narrow = (narrow >> i & 1) != 0;
    // Rounding to bf16 may turn a last bit of fp32 into one of bf16's, 2^-8.
    expect_close(numbers_of(got[i], is_narrow), widen(numbers_of(operands[i], is_narrow)),
                 is_narrow ? 1e-2 : 2e-5);
  }
}

TEST(CudaCalls, AsOnTheHost) {
  for (const Case& it : cases()) expect_same(it, 0);
}

TEST(CudaCalls, With16BitOperands) {
  for (const Case& it : cases()) {
    if (it.call.kernel == Kernel::copy || it.call.kernel == Kernel::zero) continue;
    expect_same(it, 1);  // the first
    if (it.numbers.size() > 2) expect_same(it, 0b111);
  }
}

template <class Number>
std::vector<std::byte> bytes_of_values(const std::vector<Number>& values) {
  const auto bytes = std::as_bytes(std::span{values});
  return {bytes.begin(), bytes.end()};
}

// By letter: numbers, the state of the training, two sums in fp64.
Operands operands_of(const std::string& letters, const StepState& state) {
  SeededNumbers numbers(8);
  Operands operands;
  for (const char letter : letters) {
    if (letter == 's') operands.push_back(bytes_of_values(std::vector{state}));
    if (letter == 'd') operands.push_back(bytes_of_values(std::vector{3.5, 2.25}));
    if (letter == 'w') operands.push_back(bytes_of_values(numbers.floats(333, 0.1, 1)));
  }
  return operands;
}

void expect_same_training(const KernelCall& call, const std::string& letters,
                          const StepState& state) {
  SCOPED_TRACE(std::string(entry_of(call.kernel).name));
  Operands operands = operands_of(letters, state);
  ASSERT_EQ(operands.size(), call.operands);
  const Operands got = run_on_gpu(call, operands);
  std::vector<std::span<std::byte>> spans{operands.begin(), operands.end()};
  run_call(call, spans);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (letters[i] == 'w') {
      expect_close(numbers_of(got[i], false), widen(numbers_of(operands[i], false)), 2e-6);
      continue;
    }
    for (std::size_t at = 0; at < got[i].size(); at += sizeof(double)) {
      double x = 0, y = 0;
      std::memcpy(&x, &got[i][at], sizeof x);
      std::memcpy(&y, &operands[i][at], sizeof y);
      EXPECT_NEAR(x, y, 1e-12 * std::abs(y)) << "operand " << i << " byte " << at;
    }
  }
}

TEST(CudaCalls, OptimizersWithClippedAndSkippedGradients) {
  const std::vector<std::pair<KernelCall, std::string>> calls{
      {call_of(Kernel::sgd, {}, {0.1}), "wws"},
      {call_of(Kernel::momentum, {}, {0.1, 0.9}), "wwws"},
      {call_of(Kernel::adam, {}, {0.1, 0.9, 0.99, 1e-3}), "wwwws"},
      {call_of(Kernel::lars_squares, {}), "wwsd"},
      {call_of(Kernel::lars, {}, {0.1, 0.9, 0.01}), "wwwds"},
      {call_of(Kernel::lamb_update, {}, {0.9, 0.99, 1e-3}), "wwwwsw"},
      {call_of(Kernel::layer_squares, {}), "wwd"},
      {call_of(Kernel::lamb_apply, {}, {0.1}), "wwds"},
      {call_of(Kernel::add_squares, {}, {0.5}), "wd"},
      {call_of(Kernel::round_sum, {}), "dw"},
      {call_of(Kernel::gradient_factor, {}, {0.75}), "ws"},
      {call_of(Kernel::count_step, {}), "s"},
      {call_of(Kernel::take_finite, {}), "ws"},
      {call_of(Kernel::adjust_loss_scale, {4}, {2, 0.5, 1, 0x1p+24}), "s"},
      {call_of(Kernel::scale_loss, {}), "dsd"},
      {call_of(Kernel::dropout, {9, 5, 11, 37, 40}, {0.3}), "wsw"},
  };
  for (const double finite : {1.0, 0.0})
    for (const auto& [call, letters] : calls) {
      // Nobody reads the norms of a step that is skipped; the GPU does not look before it adds.
      if (finite == 0 && call.kernel == Kernel::lars_squares) continue;
      expect_same_training(
          call, letters, {.taken = 3, .gradient_factor = 0.25, .finite = finite, .loss_scale = 8});
    }
}

}  // namespace
}  // namespace rehearse::calls_test
