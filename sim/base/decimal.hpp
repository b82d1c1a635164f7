// A decimal number at the begin of a text, as std::from_chars reads it: no locale, no copy, the
// nearest double.
#pragma once

#include <charconv>

namespace rehearse {

/// std::from_chars for a double, also where the library has it for whole numbers only (libc++ 14,
/// which the lab is built with).
std::from_chars_result read_decimal(const char* begin, const char* end, double& value);

}  // namespace rehearse
