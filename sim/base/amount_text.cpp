// A decimal number, then a letter for its thousands or the name of a currency.
#include "sim/base/amount_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/decimal.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

struct Scale {
  std::string_view letter;
  double value;
};
constexpr Scale scales[] = {
    {"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"K", 1e3}, {"k", 1e3}, {"", 1},
};

constexpr std::size_t longest_currency = 16;

// The number at the begin of `text`, and what follows it.
std::pair<double, std::string_view> split_number(std::string_view text, std::string_view what,
                                                 std::string_view example) {
  double value = 0;
  const auto [end, status] = read_decimal(text.data(), text.data() + text.size(), value);
  if (status == std::errc::invalid_argument || text.empty())
    throw InputError(
        fmt::format("\"{}\" is not {}; write e.g. \"{}\"", text.substr(0, 40), what, example));
  if (status == std::errc::result_out_of_range || !std::isfinite(value))
    throw InputError(fmt::format("\"{}\" is out of range", text.substr(0, 40)));
  if (std::signbit(value)) throw InputError(fmt::format("\"{}\" is negative", text.substr(0, 40)));
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return {value, rest};
}

}  // namespace

double parse_amount(std::string_view text) {
  const auto [value, letter] = split_number(text, "a count", "300B");
  for (const Scale& scale : scales) {
    if (scale.letter != letter) continue;
    const double result = value * scale.value;
    if (std::isfinite(result)) return result;
    throw InputError(fmt::format("\"{}\" is out of range", text.substr(0, 40)));
  }
  throw InputError(
      fmt::format("\"{}\" ends in none of K, M, B and T; write e.g. \"300B\"", text.substr(0, 40)));
}

Price parse_price(std::string_view text) {
  const auto [amount, currency] = split_number(text, "a price", "2.50 USD");
  if (currency.empty())
    throw InputError(fmt::format("missing unit: \"{}\"; write e.g. \"2.50 USD\"", text));
  const bool is_word = currency.size() <= longest_currency &&
                       std::none_of(currency.begin(), currency.end(), [](char c) {
                         return static_cast<unsigned char>(c) <= ' ' || c == 0x7f ||
                                (c >= '0' && c <= '9') || c == '.' || c == ',' || c == '/';
                       });
  if (!is_word)
    throw InputError(
        fmt::format("\"{}\" is not a price; write e.g. \"2.50 USD\"", text.substr(0, 40)));
  return {amount, std::string{currency}};
}

std::string to_text_amount(double amount) {
  for (const Scale& scale : scales) {
    if (amount < scale.value) continue;
    std::string text = fmt::format("{}{}", amount / scale.value, scale.letter);
    if (text.size() < 12 && parse_amount(text) == amount) return text;
  }
  return fmt::format("{}", amount);
}

std::string to_text(const Price& price) {
  return fmt::format("{} {}", price.amount, price.currency);
}

}  // namespace rehearse
