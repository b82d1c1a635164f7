// Quantities as people write them: "64MiB", "2us", "400Gbps", "989TFLOPS". GB is 1e9, GiB is 2^30,
// b is a bit and B a byte. A number without a unit is an error, never a guess.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/units.hpp"

namespace rehearse {

// Each throws InputError with a one-line message and no place; a file's reader adds the place.

Bytes parse_bytes(std::string_view text);                // "64MiB", "80GB", "512B"
Time parse_time(std::string_view text);                  // "2us", "850ns", "1.5ms"
BytesPerSecond parse_bandwidth(std::string_view text);   // "400Gbps", "450GBps", "25GB/s"
FlopsPerSecond parse_flops_rate(std::string_view text);  // "989TFLOPS", "1.5PFLOP/s"

/// nccl-tests' sizes, for `bench` only: "128M" is 2^27, "8" is 8 bytes.
Bytes parse_nccl_size(std::string_view text);

// Short, and exact: parsing the text gives the same value back.

std::string to_text(Bytes bytes);               // "64MiB"
std::string to_text(Time time);                 // "850ns"
std::string to_text(BytesPerSecond rate);       // "50GB/s"
std::string to_text(FlopsPerSecond rate);       // "989TFLOPS"
std::string to_text_bits(BytesPerSecond rate);  // "400Gbps", as network people say it

}  // namespace rehearse
