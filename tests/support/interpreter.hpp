// Runs a lowered Program on real numbers, one op after another: transfers copy or add. Slow and
// plain on purpose; it is what every lowered collective is checked against.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/program/program.hpp"
#include "tests/support/random_program.hpp"

namespace rehearse {

class Interpreter {
 public:
  /// Offsets and sizes must be whole elements; one byte fits every program.
  explicit Interpreter(const Program& program, Bytes element = Bytes{4})
      : program_{program}, element_{element} {}

  /// Grows to what is asked for; new elements are zero.
  std::vector<std::int64_t>& buffer(Rank rank, Buffer buffer, std::size_t elements = 0);

  /// In program order.
  void run();
  /// In another order that streams and edges allow: a missing edge shows as a wrong number. A
  /// posted transfer comes twice: it reads when it leaves, and writes when it arrives.
  void run(std::span<const OpId> order);

 private:
  std::vector<std::int64_t> take(const Transfer& transfer);
  void put(const Transfer& transfer, std::span<const std::int64_t> values);
  std::vector<std::int64_t> read(Rank rank, const Slice& slice);
  void write(Rank rank, const Slice& slice, std::span<const std::int64_t> values, Combine combine);
  std::size_t elements(Bytes bytes) const;

  const Program& program_;
  Bytes element_;
  std::map<std::pair<Rank, Buffer>, std::vector<std::int64_t>> buffers_;
};

/// A random order in which every op follows its inputs and the one before it on its stream. What is
/// posted is there twice, and arrives in order on its connection.
std::vector<OpId> random_order(const Program& program, Draw& draw);

}  // namespace rehearse
