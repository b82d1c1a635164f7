// The library's own where there is one; else the same grammar, found here and read by strtod, which
// rounds as correctly and has no locale in WebAssembly.
#include "sim/base/decimal.hpp"

#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

namespace rehearse {

#if defined(__cpp_lib_to_chars)

std::from_chars_result read_decimal(const char* begin, const char* end, double& value) {
  return std::from_chars(begin, end, value);
}

#else

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

const char* after_digits(const char* at, const char* end) {
  while (at != end && is_digit(*at)) ++at;
  return at;
}

// How long the number is that from_chars would take: [-] digits [. digits] [e [+-] digits].
const char* after_number(const char* begin, const char* end) {
  const char* at = begin;
  if (at != end && *at == '-') ++at;
  const char* const whole = at;
  at = after_digits(at, end);
  std::ptrdiff_t digits = at - whole;
  if (at != end && *at == '.') {
    const char* const part = after_digits(at + 1, end);
    digits += part - (at + 1);
    if (digits > 0) at = part;
  }
  if (digits == 0) return begin;
  if (at == end || (*at != 'e' && *at != 'E')) return at;
  const char* power = at + 1;
  if (power != end && (*power == '+' || *power == '-')) ++power;
  const char* const done = after_digits(power, end);
  return done == power ? at : done;
}

}  // namespace

std::from_chars_result read_decimal(const char* begin, const char* end, double& value) {
  const bool is_negative = begin != end && *begin == '-';
  const std::string_view rest{begin + is_negative,
                              static_cast<std::size_t>(end - begin - is_negative)};
  for (const std::string_view word : {"inf", "nan"})
    if (rest.substr(0, 3) == word) {
      value = word == "inf" ? std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::quiet_NaN();
      if (is_negative) value = -value;
      return {rest.data() + 3, std::errc{}};
    }
  const char* const stop = after_number(begin, end);
  if (stop == begin) return {begin, std::errc::invalid_argument};
  const double read = std::strtod(std::string(begin, stop).c_str(), nullptr);
  if (read == std::numeric_limits<double>::infinity() ||
      read == -std::numeric_limits<double>::infinity())
    return {stop, std::errc::result_out_of_range};
  value = read;
  return {stop, std::errc{}};
}

#endif

}  // namespace rehearse
