// The operands of one kernel call on a device, as the numbers that the kernels take: the GPU's form
// of kernels/call_operands.hpp.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/cuda_run_call.hpp"
#include "kernels/rows.hpp"
#include "sim/assert.hpp"
#include "sim/kernel_list.hpp"

namespace rehearse {

/// Widens what is stored in 16 bits when it is made; store() rounds what the kernel wrote.
class DeviceOperands {
 public:
  DeviceOperands(const CallPlace& place, const KernelCall& call,
                 std::span<const std::span<std::byte>> bytes);
  void store() const;

  CUstream_st* stream() const { return place_.stream; }
  const KernelCall& call() const { return call_; }
  std::size_t whole(std::size_t i) const {
    ASSERT(call_.sizes[i] >= 0);
    return static_cast<std::size_t>(call_.sizes[i]);
  }
  bool flag(std::size_t i) const { return call_.sizes[i] != 0; }
  double number(std::size_t i) const { return call_.numbers[i]; }
  float real(std::size_t i) const { return static_cast<float>(call_.numbers[i]); }
  RowShape rows() const { return {whole(0), whole(1)}; }

  std::span<float> operator[](std::size_t i) const {
    return is_narrow(i) ? widened_[i] : as<float>(i);
  }
  bool is_narrow(std::size_t i) const { return (call_.narrow_operands >> i & 1) != 0; }
  template <class Number>
  std::span<Number> as(std::size_t i) const {
    ASSERT(bytes_[i].size() % sizeof(Number) == 0);
    return {reinterpret_cast<Number*>(bytes_[i].data()), bytes_[i].size() / sizeof(Number)};
  }
  /// Scratch memory, until the call has ended.
  template <class Number>
  std::span<Number> take(std::size_t numbers) const {
    return {reinterpret_cast<Number*>(place_.scratch(numbers * sizeof(Number))), numbers};
  }

 private:
  const CallPlace& place_;
  const KernelCall& call_;
  std::span<const std::span<std::byte>> bytes_;
  std::vector<std::span<float>> widened_;
};

/// Embeddings, positions and losses.
void start_end_call(const DeviceOperands& operands);
/// Norms of gradients, optimizers, sparse gradients.
void start_update_call(const DeviceOperands& operands);
/// Dropout, loss scaling, 8-bit codes.
void start_regular_call(const DeviceOperands& operands);

}  // namespace rehearse
