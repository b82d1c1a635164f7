// Runs bound Programs on real numbers, one op after another: in program order,
// or in any order that streams and edges allow. Slow and plain on purpose;
// executors are held to it.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "kernels/host/run_call.hpp"
#include "kernels/math/number_formats.hpp"
#include "sim/base/error.hpp"
#include "sim/program/program.hpp"

namespace rehearse {

class TrainingInterpreter {
 public:
  explicit TrainingInterpreter(const Program& program) : program_{program} {}

  /// Grows to what is asked for; new bytes are zero.
  std::span<std::byte> bytes(Rank rank, const Slice& slice) {
    std::vector<double>& buffer = buffers_[{rank, slice.buffer}];  // aligned for all numbers
    const auto end = static_cast<std::size_t>((slice.offset + slice.size).count());
    if (buffer.size() * 8 < end) buffer.resize((end + 7) / 8);
    return std::as_writable_bytes(std::span{buffer})
        .subspan(static_cast<std::size_t>(slice.offset.count()),
                 static_cast<std::size_t>(slice.size.count()));
  }

  void run() {
    for (std::size_t i = 0; i < program_.size(); ++i) run(static_cast<OpId>(i));
  }
  void run(std::span<const OpId> order) {
    for (const OpId id : order) run(id);
  }

 private:
  void run(OpId id) {
    const Program::Op& op = program_[id];
    if (op.kind == WorkKind::compute) compute(op);
    if (op.kind == WorkKind::transfer) transfer(program_.transfer(op));
    if (op.kind == WorkKind::collective) collective(program_.collective(op));
  }

  void compute(const Program::Op& op) {
    // First all buffers grow, then their places are taken.
    for (const Access& access : program_.accesses(op)) bytes(op.rank, access.slice);
    std::vector<std::span<std::byte>> operands;
    for (const Access& access : program_.accesses(op))
      operands.push_back(bytes(op.rank, access.slice));
    run_calls(program_.calls(op), operands);
  }

  void transfer(const Transfer& work) {
    const Connection& way = program_[work.connection];
    combine(bytes(way.source, work.source()), bytes(way.target, work.target()), work.combine,
            work.numbers);
  }

  static void combine(std::span<const std::byte> from, std::span<std::byte> to, Combine how,
                      Precision numbers) {
    if (how == Combine::overwrite) {
      std::ranges::copy(from, to.begin());
      return;
    }
    if (numbers == Precision::int8) return add_codes(from, to);
    if (numbers == Precision::fp16)
      return add_narrow<Fp16>(from, to, [](float sum) { return to_fp16(sum); });
    if (numbers == Precision::bf16)
      return add_narrow<Bf16>(from, to, [](float sum) { return to_bf16(sum); });
    for (std::size_t i = 0; i + 4 <= to.size(); i += 4) {
      float a = 0, b = 0;
      std::memcpy(&a, from.data() + i, 4);
      std::memcpy(&b, to.data() + i, 4);
      const float c = how == Combine::sum ? a + b : std::max(a, b);
      std::memcpy(to.data() + i, &c, 4);
    }
  }

  static void add_codes(std::span<const std::byte> from, std::span<std::byte> to) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const int sum = static_cast<std::int8_t>(from[i]) + static_cast<std::int8_t>(to[i]);
      if (sum < -127 || sum > 127) throw CheckFailed("a sum of codes does not fit into 8 bits");
      to[i] = static_cast<std::byte>(sum);
    }
  }

  template <class Number, class Round>
  static void add_narrow(std::span<const std::byte> from, std::span<std::byte> to, Round round) {
    for (std::size_t i = 0; i + 2 <= to.size(); i += 2) {
      Number a{}, b{};
      std::memcpy(&a, from.data() + i, 2);
      std::memcpy(&b, to.data() + i, 2);
      b = round(to_float(a) + to_float(b));
      std::memcpy(to.data() + i, &b, 2);
    }
  }

  // Sums go from the first rank of the group to the last, each rounded to fp32.
  void collective(const Collective& work) {
    const auto ranks = work.group.size();
    const Cut parts{work.data, ranks};
    std::vector<std::vector<std::byte>> data;
    for (const Rank rank : work.group) {
      const auto own = bytes(rank, work.data);
      data.emplace_back(own.begin(), own.end());
    }
    std::vector<std::byte> result = data[work.kind == CollectiveKind::broadcast ? work.root : 0];
    const auto part = [&](std::size_t i) {
      const Slice slice = parts[i];
      return std::pair{static_cast<std::size_t>((slice.offset - work.data.offset).count()),
                       static_cast<std::size_t>(slice.size.count())};
    };
    if (work.kind == CollectiveKind::all_gather)
      for (std::size_t i = 0; i < ranks; ++i)
        std::memcpy(result.data() + part(i).first, data[i].data() + part(i).first, part(i).second);
    if (work.kind == CollectiveKind::all_reduce || work.kind == CollectiveKind::reduce_scatter)
      for (std::size_t i = 1; i < ranks; ++i) combine(data[i], result, work.combine, work.numbers);
    for (std::size_t i = 0; i < ranks; ++i) {
      const auto [begin, size] = work.kind == CollectiveKind::reduce_scatter
                                     ? part(i)
                                     : std::pair{std::size_t{0}, result.size()};
      const auto own = bytes(work.group[i], work.data);
      std::memcpy(own.data() + begin, result.data() + begin, size);
      // What a reduce-scatter leaves elsewhere is nobody's business: make it
      // useless.
      if (work.kind == CollectiveKind::reduce_scatter) {
        std::memset(own.data(), 0xff, begin);
        std::memset(own.data() + begin + size, 0xff, own.size() - begin - size);
      }
    }
  }

  const Program& program_;
  std::map<std::pair<Rank, Buffer>, std::vector<double>> buffers_;
};

}  // namespace rehearse
