// One value of a file as a number, a word or a quantity; or what is wrong with it, in the words
// that users see. Tables (fields.hpp) and single settings are read through the same functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/units.hpp"
#include "topology/files/document.hpp"

namespace rehearse {

/// Exactly one of them: the value, or the message.
template <class T>
struct Reading {
  std::optional<T> value;
  std::string problem;
};

// `key` is what to call the value in a message.

/// "'tp' must be a whole number, not a string"
std::string wrong_type(std::string_view key, const Value& value, std::string_view wanted);

Reading<std::string> read_text(const Value& value, std::string_view key);
Reading<bool> read_flag(const Value& value, std::string_view key);
Reading<std::size_t> read_count(const Value& value, std::string_view key, std::size_t least = 0,
                                std::size_t most = PTRDIFF_MAX);
Reading<double> read_number(const Value& value, std::string_view key);
/// One of `words`; its position.
Reading<std::size_t> read_choice(const Value& value, std::string_view key,
                                 std::span<const std::string_view> words);
/// A quantity with its unit; a bare number is an error that shows `example`.
template <class T>
Reading<T> read_quantity(const Value& value, std::string_view key, T (*parse)(std::string_view),
                         std::string_view example);

/// The message for a value that is no text and so has no unit.
std::string missing_unit(const Value& value, std::string_view key, std::string_view example);

template <class T>
Reading<T> read_quantity(const Value& value, std::string_view key, T (*parse)(std::string_view),
                         std::string_view example) {
  const std::string* text = value.text();
  if (!text) return {{}, missing_unit(value, key, example)};
  try {
    return {parse(*text), {}};
  } catch (const InputError& error) {
    return {{}, std::string{key} + ": " + error.problems().front().message};
  }
}

}  // namespace rehearse
