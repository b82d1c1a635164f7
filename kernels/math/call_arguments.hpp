// What a kernel call says of itself, on whatever device it runs: its sizes and numbers, and its
// operands as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/math/rows.hpp"
#include "sim/base/assert.hpp"
#include "sim/program/kernel_list.hpp"

namespace rehearse {

class CallArguments {
 public:
  CallArguments(const KernelCall& call, std::span<const std::span<std::byte>> bytes)
      : call_{call}, bytes_{bytes} {
    ASSERT(bytes.size() == entry_of(call.kernel).operands.size());
    ASSERT(call.narrow_operands == 0 || call.narrow == Precision::fp16 ||
           call.narrow == Precision::bf16);
  }

  const KernelCall& call() const { return call_; }
  std::size_t whole(std::size_t i) const {
    ASSERT(call_.sizes[i] >= 0);
    return static_cast<std::size_t>(call_.sizes[i]);
  }
  bool flag(std::size_t i) const { return call_.sizes[i] != 0; }
  double number(std::size_t i) const { return call_.numbers[i]; }
  float real(std::size_t i) const { return static_cast<float>(call_.numbers[i]); }
  RowShape rows() const { return {whole(0), whole(1)}; }  // where sizes begin with rows and width

  std::size_t operands() const { return bytes_.size(); }
  bool is_narrow(std::size_t i) const { return (call_.narrow_operands >> i & 1) != 0; }
  /// An operand as numbers of its own kind: tokens, counters, fp32 that nobody has to widen.
  template <class Number>
  std::span<Number> as(std::size_t i) const {
    const std::span<std::byte> bytes = bytes_[i];
    ASSERT(bytes.size() % sizeof(Number) == 0);
    ASSERT(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Number) == 0);
    return {reinterpret_cast<Number*>(bytes.data()), bytes.size() / sizeof(Number)};
  }

 private:
  const KernelCall& call_;
  std::span<const std::span<std::byte>> bytes_;
};

}  // namespace rehearse
