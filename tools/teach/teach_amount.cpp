// Units in one table; those that are only words for a count have no dimension.
#include "tools/teach/teach_amount.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

#include "sim/base/decimal.hpp"
#include "sim/base/error.hpp"
#include "sim/base/trimmed.hpp"
#include "tools/output/chart.hpp"

namespace rehearse {

namespace {

struct Unit {
  std::string_view name;
  double one = 1;
  Dimensions dimensions;
};

constexpr Dimensions second{.seconds = 1}, byte{.bytes = 1}, flop{.flops = 1}, plain{};
constexpr Dimensions per_second{.seconds = -1}, byte_rate{.seconds = -1, .bytes = 1};
constexpr Dimensions flop_rate{.seconds = -1, .flops = 1};
constexpr double kibi = 1024;

constexpr Unit units[] = {
    {"ns", 1e-9, second},
    {"us", 1e-6, second},
    {"ms", 1e-3, second},
    {"s", 1, second},
    {"min", 60, second},
    {"hours", 3600, second},
    {"days", 86400, second},
    {"B", 1, byte},
    {"KiB", kibi, byte},
    {"MiB", kibi* kibi, byte},
    {"GiB", kibi* kibi* kibi, byte},
    {"TiB", kibi* kibi* kibi* kibi, byte},
    {"kB", 1e3, byte},
    {"MB", 1e6, byte},
    {"GB", 1e9, byte},
    {"MB/s", 1e6, byte_rate},
    {"GB/s", 1e9, byte_rate},
    {"TB/s", 1e12, byte_rate},
    {"Gb/s", 1e9 / 8, byte_rate},
    {"GFLOP", 1e9, flop},
    {"TFLOP", 1e12, flop},
    {"PFLOP", 1e15, flop},
    {"EFLOP", 1e18, flop},
    {"GFLOP/s", 1e9, flop_rate},
    {"TFLOP/s", 1e12, flop_rate},
    {"PFLOP/s", 1e15, flop_rate},
    {"samples/s", 1, per_second},
    {"tokens/s", 1, per_second},
    {"updates/s", 1, per_second},
    {"%", 0.01, plain},
    {"times", 1, plain},
    {"GPUs", 1, plain},
    {"parameters", 1, plain},
    {"samples", 1, plain},
    {"micro-batches", 1, plain},
    {"steps", 1, plain},
    {"messages", 1, plain},
    {"versions", 1, plain},
    {"", 1, plain},
};

const Unit* find_unit(std::string_view name) {
  const auto* const found = std::find_if(std::begin(units), std::end(units),
                                         [&](const Unit& one) { return one.name == name; });
  return found == std::end(units) ? nullptr : found;
}

// Of the units that a dimension is read in, the largest that leaves at least one of it.
std::span<const std::string_view> readable(const Dimensions& dimensions) {
  static constexpr std::string_view times[] = {"ns", "us", "ms", "s"};
  static constexpr std::string_view sizes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  static constexpr std::string_view byte_rates[] = {"MB/s", "GB/s", "TB/s"};
  static constexpr std::string_view works[] = {"GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  static constexpr std::string_view flop_rates[] = {"GFLOP/s", "TFLOP/s", "PFLOP/s"};
  static constexpr std::string_view rates[] = {"samples/s"};
  static constexpr std::string_view counts[] = {""};
  if (dimensions == second) return times;
  if (dimensions == byte) return sizes;
  if (dimensions == byte_rate) return byte_rates;
  if (dimensions == flop) return works;
  if (dimensions == flop_rate) return flop_rates;
  if (dimensions == per_second) return rates;
  return counts;
}

std::string digits(double value) {
  const double size = std::abs(value);
  if (size >= 1e15) return fmt::format("{:.3g}", value);
  if (size == 0) return "0";
  const int whole = static_cast<int>(std::floor(std::log10(size))) + 1;
  std::string text = grouped(value, std::clamp(3 - whole, 0, 6));
  if (text.find('.') == std::string::npos) return text;
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string dimension_words(const Dimensions& dimensions) {
  if (dimensions == plain) return "a plain number";
  std::string words;
  const auto add = [&](int power, std::string_view name) {
    if (power == 0) return;
    words += words.empty() ? "" : " ";
    words += power == 1 ? std::string{name} : fmt::format("{}^{}", name, power);
  };
  add(dimensions.flops, "FLOP");
  add(dimensions.bytes, "B");
  add(dimensions.seconds, "s");
  return words;
}

Amount sum(Amount a, Amount b, double sign) {
  if (!(a.dimensions == b.dimensions))
    throw InputError(fmt::format("{} and {} cannot be added", dimension_words(a.dimensions),
                                 dimension_words(b.dimensions)));
  return {a.value + sign * b.value, a.dimensions};
}

}  // namespace

Amount operator+(Amount a, Amount b) { return sum(a, b, 1); }
Amount operator-(Amount a, Amount b) { return sum(a, b, -1); }
Amount operator*(Amount a, Amount b) {
  const Dimensions &p = a.dimensions, &q = b.dimensions;
  return {a.value * b.value, {p.seconds + q.seconds, p.bytes + q.bytes, p.flops + q.flops}};
}
Amount operator/(Amount a, Amount b) {
  if (b.value == 0) throw InputError("division by zero");
  const Dimensions &p = a.dimensions, &q = b.dimensions;
  return {a.value / b.value, {p.seconds - q.seconds, p.bytes - q.bytes, p.flops - q.flops}};
}

Amount unit(std::string_view name) {
  const Unit* const found = find_unit(name);
  if (found != nullptr) return {found->one, found->dimensions};
  std::vector<std::string> names;
  for (const Unit& one : units) names.emplace_back(one.name);
  throw InputError(fmt::format("unknown unit '{}'{}", name, did_you_mean(name, names)));
}

std::string to_text(Amount amount) {
  std::string_view best;
  for (const std::string_view name : readable(amount.dimensions))
    if (best.empty() || std::abs(amount.value) >= 0.9995 * find_unit(name)->one) best = name;
  return to_text(amount, best);
}

std::string to_text(Amount amount, std::string_view unit_name) {
  const Amount one = unit(unit_name);
  if (!(one.dimensions == amount.dimensions))
    throw InputError(
        fmt::format("{} is not in '{}'", dimension_words(amount.dimensions), unit_name));
  const std::string number = digits(amount.value / one.value);
  return unit_name.empty() ? number : fmt::format("{} {}", number, unit_name);
}

Amount parse_guess(std::string_view text, std::string_view unit_name) {
  const std::string_view words = trimmed(text);
  const Amount asked = unit(unit_name);
  const std::string hint =
      unit_name.empty() ? "a number" : fmt::format("a number of {}", unit_name);
  double number = 0;
  std::string plain_digits{words};
  std::erase(plain_digits, ',');
  const char* const begin = plain_digits.data();
  const char* const end = begin + plain_digits.size();
  const std::from_chars_result read = read_decimal(begin, end, number);
  if (read.ec != std::errc{} || !std::isfinite(number))
    throw InputError(fmt::format("'{}' is no guess: type {}", words, hint));
  const std::string_view rest = trimmed({read.ptr, static_cast<std::size_t>(end - read.ptr)});
  if (rest.empty()) return {number * asked.value, asked.dimensions};
  const Unit* const given = find_unit(rest);
  if (given == nullptr || !(given->dimensions == asked.dimensions))
    throw InputError(fmt::format("'{}' is no guess: type {}", words, hint));
  return {number * given->one, asked.dimensions};
}

}  // namespace rehearse
