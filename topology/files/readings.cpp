// The types of values, and the messages for those that are not of the type that was asked for.
#include "topology/files/readings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rehearse {

std::string wrong_type(std::string_view key, const Value& value, std::string_view wanted) {
  return fmt::format("'{}' must be {}, not {}", key, wanted, kind_name(value));
}

Reading<std::string> read_text(const Value& value, std::string_view key) {
  if (const std::string* text = value.text()) return {*text, {}};
  return {{}, wrong_type(key, value, "a string")};
}

Reading<bool> read_flag(const Value& value, std::string_view key) {
  if (const bool* flag = std::get_if<bool>(&value.data)) return {*flag, {}};
  return {{}, wrong_type(key, value, "true or false")};
}

Reading<std::size_t> read_count(const Value& value, std::string_view key, std::size_t least,
                                std::size_t most) {
  const std::int64_t* whole = std::get_if<std::int64_t>(&value.data);
  if (!whole) return {{}, wrong_type(key, value, "a whole number")};
  // Not std::size_t, which has 32 bits in the lab.
  const auto count = static_cast<std::uint64_t>(*whole);
  if (*whole < 0 || count < least)
    return {{}, fmt::format("'{}' must be at least {}, not {}", key, least, *whole)};
  if (count > most) return {{}, fmt::format("'{}' must be at most {}, not {}", key, most, *whole)};
  return {static_cast<std::size_t>(count), {}};
}

Reading<double> read_number(const Value& value, std::string_view key) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data))
    return {static_cast<double>(*whole), {}};
  const double* real = std::get_if<double>(&value.data);
  if (real && std::isfinite(*real)) return {*real, {}};
  return {{}, wrong_type(key, value, "a finite number")};
}

Reading<std::size_t> read_choice(const Value& value, std::string_view key,
                                 std::span<const std::string_view> words) {
  const std::string* word = value.text();
  if (!word) return {{}, wrong_type(key, value, "a string")};
  const auto at = std::find(words.begin(), words.end(), *word);
  if (at != words.end()) return {static_cast<std::size_t>(at - words.begin()), {}};
  const std::vector<std::string> candidates{words.begin(), words.end()};
  std::string hint = did_you_mean(*word, candidates);
  if (hint.empty()) hint = fmt::format("; one of {}", fmt::join(words, ", "));
  return {{}, fmt::format("unknown {} '{}'{}", key, *word, hint)};
}

std::string missing_unit(const Value& value, std::string_view key, std::string_view example) {
  constexpr const char* text = "{}: missing unit: {}; write e.g. \"{}\"";
  if (const auto* whole = std::get_if<std::int64_t>(&value.data))
    return fmt::format(text, key, *whole, example);
  if (const auto* real = std::get_if<double>(&value.data))
    return fmt::format(text, key, *real, example);
  return wrong_type(key, value, fmt::format("a string such as \"{}\"", example));
}

}  // namespace rehearse
