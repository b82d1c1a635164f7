// One parser for all quantities: a decimal number, then a unit looked up in a table.
#include "sim/base/quantity_text.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/decimal.hpp"
#include "sim/base/error.hpp"
#include "sim/base/trimmed.hpp"

namespace rehearse {

namespace {

struct Unit {
  std::string name;
  double scale;
};

// What a kind of quantity is called, how an example looks, and its units.
struct Vocabulary {
  std::string_view noun, example;
  std::vector<Unit> units;
};

struct Prefix {
  std::string_view text;
  double scale;
};

constexpr std::array<Prefix, 12> prefixes{{{"", 1},
                                           {"k", 1e3},
                                           {"K", 1e3},
                                           {"M", 1e6},
                                           {"G", 1e9},
                                           {"T", 1e12},
                                           {"P", 1e15},
                                           {"Ki", 1024.0},
                                           {"Mi", 1048576.0},
                                           {"Gi", 1073741824.0},
                                           {"Ti", 1099511627776.0},
                                           {"Pi", 1125899906842624.0}}};

std::vector<Unit> prefixed(std::span<const Unit> bases) {
  std::vector<Unit> units;
  for (const Unit& base : bases)
    for (const Prefix& prefix : prefixes)
      units.push_back({std::string{prefix.text} + base.name, prefix.scale * base.scale});
  return units;
}

const Vocabulary& bytes_vocabulary() {
  static const Unit base[] = {{"B", 1}};
  static const Vocabulary words{"a size", "64MiB", prefixed(base)};
  return words;
}

const Vocabulary& time_vocabulary() {
  // In picoseconds: the clock's own unit, so whole numbers stay exact.
  static const Vocabulary words{
      "a time",
      "2us",
      {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"µs", 1e6}, {"ms", 1e9}, {"s", 1e12}}};
  return words;
}

const Vocabulary& bandwidth_vocabulary() {
  static const Unit base[] = {
      {"Bps", 1}, {"B/s", 1}, {"bps", 0.125}, {"b/s", 0.125}, {"bit/s", 0.125}};
  static const Vocabulary words{"a bandwidth", "400Gbps", prefixed(base)};
  return words;
}

const Vocabulary& flops_vocabulary() {
  static const Unit base[] = {{"FLOPS", 1}, {"FLOP/s", 1}, {"FLOPs", 1}};
  static const Vocabulary words{"a rate of operations", "989TFLOPS", prefixed(base)};
  return words;
}

struct Number {
  double value;
  std::string_view rest;
};

// Long texts are cut in messages: an error stays one readable line.
std::string quoted(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 40)) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    shown += is_control ? '?' : c;
  }
  return fmt::format("\"{}{}\"", shown, text.size() > 40 ? "…" : "");
}

Number parse_number(std::string_view text, const Vocabulary& words) {
  const std::string_view body = trimmed(text);
  double value = 0;
  const auto [end, status] = read_decimal(body.data(), body.data() + body.size(), value);
  if (status == std::errc::invalid_argument || body.empty())
    throw InputError(
        fmt::format("{} is not {}; write e.g. \"{}\"", quoted(text), words.noun, words.example));
  if (status == std::errc::result_out_of_range)
    throw InputError(fmt::format("{} is out of range", quoted(text)));
  if (std::isnan(value) || std::isinf(value))
    throw InputError(fmt::format("{} is not a finite number", quoted(text)));
  if (value < 0 || (value == 0 && body.front() == '-'))
    throw InputError(fmt::format("{} is negative", quoted(text)));
  const auto used = static_cast<std::size_t>(end - body.data());
  return {value, trimmed(body.substr(used))};
}

double scale_of(std::string_view unit, std::string_view text, const Vocabulary& words) {
  if (unit.empty())
    throw InputError(
        fmt::format("missing unit: {}; write e.g. \"{}\"", quoted(text), words.example));
  std::vector<std::string> names;
  for (const Unit& known : words.units) {
    if (known.name == unit) return known.scale;
    names.push_back(known.name);
  }
  // The commonest slip is the case of a letter, and there it matters most: b and B differ by 8.
  const auto folded = [](std::string word) {
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return word;
  };
  std::vector<std::string> same;
  for (const std::string& name : names)
    if (folded(name) == folded(std::string{unit})) same.push_back(name);
  throw InputError(fmt::format(
      "unknown unit in {}{}", quoted(text),
      same.empty() ? fmt::format("; write e.g. \"{}\"", words.example) : did_you_mean(unit, same)));
}

double parse_real(std::string_view text, const Vocabulary& words) {
  const Number number = parse_number(text, words);
  const double result = number.value * scale_of(number.rest, text, words);
  if (!std::isfinite(result)) throw InputError(fmt::format("{} is out of range", quoted(text)));
  return result;
}

// Counts that fit an int64. Beyond 2^53 a double skips integers, so plain digits go their own way.
std::int64_t parse_whole(std::string_view text, const Vocabulary& words,
                         std::string_view smallest) {
  const double value = parse_real(text, words);
  if (value >= 9.2e18) throw InputError(fmt::format("{} is out of range", quoted(text)));
  const std::string_view body = trimmed(text);
  std::int64_t digits = 0;
  const auto [end, status] = std::from_chars(body.data(), body.data() + body.size(), digits);
  const std::string_view rest{end, static_cast<std::size_t>(body.data() + body.size() - end)};
  const bool is_plain = status == std::errc{} && rest.find_first_of(".eE") != 0;
  if (is_plain) return digits * static_cast<std::int64_t>(scale_of(trimmed(rest), text, words));
  const double nearest = std::round(value);
  // 1e-9: what a decimal fraction such as 1.6TB may lose on its way through a double.
  if (std::abs(value - nearest) > 1e-9 * std::max(1.0, nearest))
    throw InputError(fmt::format("{} is finer than {}", quoted(text), smallest));
  return static_cast<std::int64_t>(nearest);
}

// The shortest text that names `value` exactly in one of the units; the first among equals.
template <class Parse>
std::string shortest_whole(std::int64_t value, std::span<const Unit> units, Parse parse) {
  std::string best;
  const auto offer = [&](std::string text) {
    if (best.empty() || text.size() < best.size()) best = std::move(text);
  };
  for (const Unit& unit : units) {
    const auto scale = static_cast<std::int64_t>(unit.scale);
    if (value % scale == 0) {
      offer(fmt::format("{}{}", value / scale, unit.name));
    } else if (value < std::int64_t{1} << 53) {
      const std::string fraction =
          fmt::format("{}{}", static_cast<double>(value) / unit.scale, unit.name);
      if (fraction.size() < 9 && parse(fraction) == value) offer(fraction);
    }
  }
  return best;
}

template <class Parse>
std::string shortest_real(double value, std::span<const Unit> units, Parse parse) {
  std::string best;
  for (const Unit& unit : units) {
    const std::string text = fmt::format("{}{}", value / unit.scale, unit.name);
    if (!best.empty() && text.size() >= best.size()) continue;
    if (parse(text).count() == value) best = text;
  }
  return best;
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  return Bytes{parse_whole(text, bytes_vocabulary(), "one byte")};
}

Time parse_time(std::string_view text) {
  return Time::picoseconds(parse_whole(text, time_vocabulary(), "one picosecond"));
}

BytesPerSecond parse_bandwidth(std::string_view text) {
  return BytesPerSecond{parse_real(text, bandwidth_vocabulary())};
}

FlopsPerSecond parse_flops_rate(std::string_view text) {
  return FlopsPerSecond{parse_real(text, flops_vocabulary())};
}

Bytes parse_nccl_size(std::string_view text) {
  const auto fail = [&] {
    return InputError(fmt::format("{} is not a size; write e.g. \"128M\"", quoted(text)));
  };
  std::int64_t digits = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), digits);
  if (status == std::errc::result_out_of_range)
    throw InputError(fmt::format("{} is out of range", quoted(text)));
  if (status != std::errc{}) throw fail();
  if (text.front() == '-') throw InputError(fmt::format("{} is negative", quoted(text)));
  const std::string_view suffix{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  constexpr std::string_view letters = "KMGT";
  if (suffix.empty()) return Bytes{digits};
  const auto power = letters.find(static_cast<char>(suffix.front() & ~0x20));  // upper case
  if (suffix.size() > 1 || power == std::string_view::npos) throw fail();
  const std::int64_t scale = std::int64_t{1} << (10 * (power + 1));
  if (digits > std::numeric_limits<std::int64_t>::max() / scale)
    throw InputError(fmt::format("{} is out of range", quoted(text)));
  return Bytes{digits * scale};
}

std::string to_text(Bytes bytes) {
  static const Unit units[] = {
      {"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}, {"TB", 1e12},
      {"GB", 1e9},           {"MB", 1e6},        {"kB", 1e3},     {"B", 1}};
  const auto parse = [](const std::string& text) { return parse_bytes(text).count(); };
  return bytes == Bytes{} ? "0B" : shortest_whole(bytes.count(), units, parse);
}

std::string to_text(Time time) {
  static const Unit units[] = {{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}, {"ps", 1}};
  const auto parse = [](const std::string& text) { return parse_time(text).ps(); };
  return time == Time{} ? "0s" : shortest_whole(time.ps(), units, parse);
}

std::string to_text(BytesPerSecond rate) {
  static const Unit units[] = {
      {"GB/s", 1e9}, {"TB/s", 1e12}, {"MB/s", 1e6}, {"kB/s", 1e3}, {"B/s", 1}};
  return shortest_real(rate.count(), units, parse_bandwidth);
}

std::string to_text(FlopsPerSecond rate) {
  static const Unit units[] = {{"TFLOPS", 1e12}, {"PFLOPS", 1e15}, {"GFLOPS", 1e9}, {"FLOPS", 1}};
  return shortest_real(rate.count(), units, parse_flops_rate);
}

std::string to_text_bits(BytesPerSecond rate) {
  static const Unit units[] = {{"Gbps", 1.25e8}, {"Mbps", 1.25e5}, {"bps", 0.125}, {"B/s", 1}};
  return shortest_real(rate.count(), units, parse_bandwidth);
}

}  // namespace rehearse
