// TOML to the common tree, through toml++, and the tree's own operations.
#include "topology/files/document.hpp"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <utility>

#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

Place place_of(const toml::source_region& region, const std::string& file) {
  return {file, region.begin.line, region.begin.column};
}

Value converted(const toml::node& node, const std::string& file, std::size_t depth);

Table converted_table(const toml::table& table, const std::string& file, std::size_t depth) {
  Table members;
  for (const auto& [key, node] : table)
    members.push_back(
        {std::string{key.str()}, place_of(key.source(), file), {converted(node, file, depth)}});
  // toml++ keeps keys sorted by name; people read files from the top.
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
    return std::pair{a.key_place.line, a.key_place.column} <
           std::pair{b.key_place.line, b.key_place.column};
  });
  return members;
}

Value converted(const toml::node& node, const std::string& file, std::size_t depth) {
  Value value{place_of(node.source(), file), {}};
  if (depth > deepest_nesting) throw InputError(value.place, "nested too deeply");
  if (const toml::table* table = node.as_table()) {
    value.data = converted_table(*table, file, depth + 1);
  } else if (const toml::array* array = node.as_array()) {
    Array items;
    for (const toml::node& item : *array) items.push_back(converted(item, file, depth + 1));
    value.data = std::move(items);
  } else if (const auto* text = node.as_string()) {
    value.data = text->get();
  } else if (const auto* whole = node.as_integer()) {
    value.data = whole->get();
  } else if (const auto* real = node.as_floating_point()) {
    value.data = real->get();
  } else if (const auto* flag = node.as_boolean()) {
    value.data = flag->get();
  } else {
    throw InputError(value.place, "dates and times mean nothing here");
  }
  return value;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  if (!table()) return nullptr;
  for (const Member& member : *table())
    if (member.key == key) return &member.value.front();
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

std::string_view kind_name(const Value& value) {
  constexpr std::string_view names[] = {"true or false", "a number", "a number",
                                        "a string",      "a list",   "a table"};
  return names[value.data.index()];
}

Value parse_toml_document(std::string_view text, const std::string& file) {
  check_utf8(text, file);
  try {
    return converted(toml::parse(text, file), file, 0);
  } catch (const toml::parse_error& error) {
    throw InputError(place_of(error.source(), file), one_line(error.description()));
  }
}

Value parse_document(std::string_view text, const std::string& file) {
  return file.ends_with(".json") ? parse_json_document(text, file)
                                 : parse_toml_document(text, file);
}

Value overlaid(Value base, const Value& changes) {
  if (!base.table() || !changes.table()) return changes;
  const Value *old_kind = base.find("kind"), *new_kind = changes.find("kind");
  if (old_kind && new_kind && old_kind->data != new_kind->data) return changes;
  Table& members = std::get<Table>(base.data);
  for (const Member& change : *changes.table()) {
    const auto old = std::find_if(members.begin(), members.end(),
                                  [&](const Member& m) { return m.key == change.key; });
    if (old == members.end()) {
      members.push_back(change);
    } else {
      *old = {change.key,
              change.key_place,
              {overlaid(std::move(old->value.front()), change.value.front())}};
    }
  }
  base.place = changes.place;
  return base;
}

}  // namespace rehearse
