// Limits keep sums over a whole program inside 63 bits, and a small file small.
#include "sim/program/program_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/decimal.hpp"
#include "sim/program/kernel_list.hpp"

namespace rehearse::program_words {

namespace {

constexpr std::uint64_t most_ranks = 1u << 24, most_bytes = 1ull << 50, most_copies = 1u << 24,
                        longest_side = 1ull << 31;

constexpr std::array kinds{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                           CollectiveKind::all_gather, CollectiveKind::broadcast,
                           CollectiveKind::reduce,     CollectiveKind::all_to_all,
                           CollectiveKind::send_recv};

std::int64_t side(TextLine& line, std::string_view what) {
  const std::uint64_t value = line.integer(what, longest_side);
  if (value == 0) line.fail(fmt::format("{} must be at least 1", what));
  return static_cast<std::int64_t>(value);
}

double real(TextLine& line) {
  const std::string_view digits = line.word("a number");
  double value = 0;
  const auto [end, error] = read_decimal(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value))
    line.fail(fmt::format("expected a number, not '{}'", digits));
  return value;
}

}  // namespace

Rank rank(TextLine& line) { return static_cast<Rank>(line.integer("a rank", most_ranks - 1)); }

std::vector<Rank> ranks(TextLine& line) {
  std::vector<Rank> list;
  do list.push_back(rank(line));
  while (line.accept(","));
  return list;
}

Stream stream(TextLine& line) {
  if (line.accept("compute")) return Stream::compute;
  if (line.accept("copy")) return Stream::copy;
  if (line.accept("queue"))
    return queue_lane(line.integer("a queue", UINT16_MAX - index(Stream::queue)));
  line.expect("comm");
  return comm_lane(line.integer("a lane", index(Stream::queue) - 1 - index(Stream::comm)));
}

Bytes bytes(TextLine& line, std::string_view what) {
  return Bytes{static_cast<std::int64_t>(line.integer(what, most_bytes))};
}

Slice slice(TextLine& line) {
  Slice slice;
  slice.buffer = static_cast<Buffer>(line.integer("a buffer", UINT32_MAX));
  line.expect("[");
  slice.offset = bytes(line, "an offset");
  line.expect(",");
  line.expect("+");
  slice.size = bytes(line, "a size");
  line.expect("]");
  return slice;
}

std::uint32_t copies(TextLine& line) {
  const std::uint64_t value = line.integer("a number of copies", most_copies);
  if (value == 0) line.fail("the number of copies must be at least 1");
  return static_cast<std::uint32_t>(value);
}

CollectiveKind collective_kind(TextLine& line) {
  const std::string_view name = line.word("a collective");
  const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                 [&](CollectiveKind k) { return to_string(k) == name; });
  if (kind != kinds.end()) return *kind;
  std::vector<std::string> known;
  for (const CollectiveKind k : kinds) known.emplace_back(to_string(k));
  line.fail(fmt::format("unknown collective '{}'{}", name, did_you_mean(name, known)));
}

Compute kernel(TextLine& line) {
  Compute work;
  if (line.accept("flops")) work.flops = Flops{line.number("an amount of work")};
  if (line.accept("traffic")) work.traffic = bytes(line, "memory traffic");
  if (line.accept("gemm")) {
    work.gemm.m = side(line, "the rows of a product");
    work.gemm.n = side(line, "the columns of a product");
    work.gemm.k = side(line, "the depth of a product");
    if (line.accept("batch")) work.gemm.batch = side(line, "a number of products");
  }
  if (line.accept("math")) work.math = precision(line);
  return work;
}

Precision precision(TextLine& line) {
  const std::string_view word = line.word("a precision");
  const auto at = std::find(number_words.begin(), number_words.end(), word);
  if (at != number_words.end()) return static_cast<Precision>(at - number_words.begin());
  const std::vector<std::string> known{number_words.begin(), number_words.end()};
  line.fail(fmt::format("unknown precision '{}'{}", word, did_you_mean(word, known)));
}

KernelCall call(TextLine& line) {
  KernelCall call;
  const std::string_view word = line.word("a kernel");
  const std::optional<Kernel> found = find_kernel(word);
  if (!found) {
    const std::vector<std::string_view> names = kernel_names();
    const std::vector<std::string> known{names.begin(), names.end()};
    line.fail(fmt::format("unknown kernel '{}'{}", word, did_you_mean(word, known)));
  }
  call.kernel = *found;
  const std::size_t wanted = entry_of(*found).operands.size();
  line.expect("takes");
  call.operands = static_cast<std::uint8_t>(line.integer("a number of operands", 16));
  if (call.operands != wanted)
    line.fail(fmt::format("{} takes {} operands, not {}", word, wanted, call.operands));
  // Commas part numbers; a further one than there is room for is left for expect_end() to find.
  const auto list = [&](auto& numbers, auto read) {
    std::size_t i = 0;
    do numbers[i++] = read();
    while (i < numbers.size() && line.accept(","));
  };
  if (line.accept("sizes"))
    list(call.sizes, [&] { return static_cast<std::int64_t>(line.integer("a size", INT64_MAX)); });
  if (line.accept("numbers")) list(call.numbers, [&] { return real(line); });
  if (line.accept("narrow")) {
    call.narrow = precision(line);
    call.narrow_operands =
        static_cast<std::uint16_t>(line.integer("a set of operands", (1u << wanted) - 1));
  }
  return call;
}

void check_operands(TextLine& line, std::span<const Access> accesses,
                    std::span<const KernelCall> calls) {
  if (calls.empty()) return;
  std::size_t taken = 0;
  for (const KernelCall& call : calls)
    for (std::size_t i = 0; i < call.operands; ++i, ++taken)
      if (taken < accesses.size() && accesses[taken].writes != writes_operand(call.kernel, i))
        line.fail(fmt::format("{} {} its operand {}", entry_of(call.kernel).name,
                              accesses[taken].writes ? "only reads" : "writes", i + 1));
  if (taken != accesses.size())
    line.fail(
        fmt::format("the kernels take {} operands, and the op has {}", taken, accesses.size()));
}

}  // namespace rehearse::program_words
