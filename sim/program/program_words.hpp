// The words that the statements of a program file are made of: each takes its own from a line, or
// throws with the place of what does not fit. The statements are in sim/program/program_reader.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/text_line.hpp"
#include "sim/program/program.hpp"

namespace rehearse::program_words {

Rank rank(TextLine& line);
std::vector<Rank> ranks(TextLine& line);  // 0,1,2
Stream stream(TextLine& line);            // compute, copy, comm 3, queue 0
Bytes bytes(TextLine& line, std::string_view what);
Slice slice(TextLine& line);           // 0[512,+1024]
std::uint32_t copies(TextLine& line);  // at least one
CollectiveKind collective_kind(TextLine& line);
/// flops 1e9 traffic 4096 gemm 128 64 32 batch 2 math bf16; all but the op's fixed time.
Compute kernel(TextLine& line);
Precision precision(TextLine& line);
/// gemm takes 3 sizes 4,5,6 numbers 1,0.5 narrow bf16 7; what follows "runs".
KernelCall call(TextLine& line);
/// Fails unless the calls take all accesses and each writes what its kernel writes.
void check_operands(TextLine& line, std::span<const Access> accesses,
                    std::span<const KernelCall> calls);

/// The readers of quantities know no place; this adds it.
template <class Value>
Value quantity(TextLine& line, std::string_view what, Value (*parse)(std::string_view)) {
  const std::string_view text = line.word(what);
  try {
    return parse(text);
  } catch (const InputError& error) {
    line.fail(error.problems().front().message);
  }
}

}  // namespace rehearse::program_words
