// A TOML or JSON file as one tree that remembers where in the file each value stands. Readers of
// clusters and scenarios see this tree only, so both syntaxes give the same errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"

namespace rehearse {

class Value;

/// Deeper nesting is nobody's configuration, and recursion must end before the stack does.
constexpr std::size_t deepest_nesting = 64;

struct Member {
  std::string key;
  Place key_place;
  std::vector<Value> value;  // exactly one; a vector because Value is not complete yet
  friend bool operator==(const Member&, const Member&) = default;
};

using Table = std::vector<Member>;  // in file order
using Array = std::vector<Value>;

class Value {
 public:
  Place place;
  std::variant<bool, std::int64_t, double, std::string, Array, Table> data;

  friend bool operator==(const Value&, const Value&) = default;

  const Table* table() const { return std::get_if<Table>(&data); }
  const Array* array() const { return std::get_if<Array>(&data); }
  const std::string* text() const { return std::get_if<std::string>(&data); }
  /// The value of a key of a table, or null.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
};

/// "a string", "a number", "a table" …: for messages.
std::string_view kind_name(const Value& value);

/// What null means in JSON: nothing, or (in files of others) that the key is not there.
enum class Nulls : std::uint8_t { refused, left_out };

/// The whole text as a table. Throws InputError at the library's place of the error.
Value parse_toml_document(std::string_view text, const std::string& file);
Value parse_json_document(std::string_view text, const std::string& file,
                          Nulls nulls = Nulls::refused);

/// By the file's ending: `.json` is JSON, all else TOML.
Value parse_document(std::string_view text, const std::string& file);

/// In one line, keys sorted: equal trees, equal texts. Throws InputError at a number that is not
/// finite, which JSON cannot say.
std::string to_json(const Value& value);
std::string to_toml(const Value& value);
/// `key = value`, a line each, of a table.
std::string toml_members(const Value& table);
/// A basic string of TOML, with its quotes.
std::string toml_text(std::string_view text);

/// `changes` laid over `base`: tables key by key, everything else replaced; so is a table whose
/// `kind` changes, for the keys of one kind mean nothing to another.
Value overlaid(Value base, const Value& changes);

}  // namespace rehearse
