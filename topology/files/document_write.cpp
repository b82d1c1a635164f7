// The common tree back as text: JSON with sorted keys, so that equal trees have equal texts, and
// TOML in one line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "topology/files/document.hpp"

namespace rehearse {

namespace {

// Where the two syntaxes differ.
struct Syntax {
  std::string_view equals;
  std::string (*key)(std::string_view);
  std::string (*text)(std::string_view);
};

std::string json_text(std::string_view text) { return nlohmann::json(text).dump(); }

std::string toml_key(std::string_view key) {
  const auto is_bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  const bool all_bare = !key.empty() && std::all_of(key.begin(), key.end(), is_bare);
  return all_bare ? std::string{key} : toml_text(key);
}

// Shortest that reads back the same; a point or an exponent says that it is no whole number.
std::string real_text(double real) { return nlohmann::json(real).dump(); }

std::string written(const Value& value, const Syntax& syntax) {
  const auto list = [](const std::vector<std::string>& parts, char open, char close) {
    return fmt::format("{}{}{}", open, fmt::join(parts, ", "), close);
  };
  std::vector<std::string> parts;
  if (const Table* table = value.table()) {
    std::vector<const Member*> members;
    for (const Member& member : *table) members.push_back(&member);
    std::sort(members.begin(), members.end(),
              [](const Member* a, const Member* b) { return a->key < b->key; });
    for (const Member* member : members)
      parts.push_back(fmt::format("{}{}{}", syntax.key(member->key), syntax.equals,
                                  written(member->value.front(), syntax)));
    return list(parts, '{', '}');
  }
  if (const Array* array = value.array()) {
    for (const Value& item : *array) parts.push_back(written(item, syntax));
    return list(parts, '[', ']');
  }
  if (const std::string* text = value.text()) return syntax.text(*text);
  if (const bool* flag = std::get_if<bool>(&value.data)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value.data)) return fmt::to_string(*whole);
  const double real = std::get<double>(value.data);
  if (!std::isfinite(real)) throw InputError(value.place, "must be a finite number");
  return real_text(real);
}

}  // namespace

std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string to_json(const Value& value) { return written(value, {": ", json_text, json_text}); }

std::string to_toml(const Value& value) { return written(value, {" = ", toml_key, toml_text}); }

std::string toml_members(const Value& table) {
  std::vector<std::string> lines;
  for (const Member& member : *table.table())
    lines.push_back(fmt::format("{} = {}\n", toml_key(member.key), to_toml(member.value.front())));
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, ""));
}

}  // namespace rehearse
