// The formats that numbers are kept and multiplied in.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/units.hpp"

namespace rehearse {

/// Whole numbers of 8 bits are codes on their way between ranks, and nothing is multiplied in them.
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, fp8, int8 };

/// "bf16": the words of scenarios and of the catalog's peaks, in the order of the enum.
inline constexpr std::array<std::string_view, 5> precision_words{"fp32", "tf32", "fp16", "bf16",
                                                                 "fp8"};
/// And all that a Program may send.
inline constexpr std::array<std::string_view, 6> number_words{"fp32", "tf32", "fp16",
                                                              "bf16", "fp8",  "int8"};
constexpr std::string_view to_string(Precision precision) {
  return number_words[static_cast<std::size_t>(precision)];
}

/// Of one number in memory; TF32 is how fp32 is multiplied, not how it is kept.
constexpr Bytes bytes_of(Precision precision) {
  constexpr std::int64_t sizes[] = {4, 4, 2, 2, 1, 1};
  return Bytes{sizes[static_cast<std::size_t>(precision)]};
}

}  // namespace rehearse
