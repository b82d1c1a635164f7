// Large counts and prices as people write them: "300B" tokens, "1.28M" samples, "2.50 USD".
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

struct Price {
  double amount = 0;
  std::string currency;
  friend bool operator==(const Price&, const Price&) = default;
};

// Each throws InputError with a one-line message and no place; a file's reader adds the place.

/// "15T", "300B", "1.28M", "50k", "1000": K, M, B and T are thousands, as in 70B parameters.
double parse_amount(std::string_view text);
/// "2.50 USD": a number, and whatever money is called.
Price parse_price(std::string_view text);

// Parsing the text gives the same value back.

std::string to_text_amount(double amount);
std::string to_text(const Price& price);

}  // namespace rehearse
