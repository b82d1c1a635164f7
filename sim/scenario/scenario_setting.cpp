// Finding the key that a word means, and giving it its value.
#include "sim/scenario/scenario_setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/assert.hpp"
#include "sim/base/trimmed.hpp"
#include "sim/scenario/scenario_cluster.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

// What TOML understands; else the text itself: `bf16` and `2.50 USD` need no quotes on a command
// line.
Value parsed_value(std::string_view text, const Place& place) {
  Value value{place, std::string{text}};
  if (text.find_first_of("\r\n") != std::string_view::npos) return value;
  try {
    const Value document = parse_toml_document(fmt::format("v = {}", text), "");
    value.data = document.table()->front().value.front().data;
  } catch (const InputError&) {  // the text itself, then
  }
  return value;
}

bool is_free(std::string_view table) { return table == "model" || table == "cluster"; }

[[noreturn]] void unknown(std::string_view word, const Place& place) {
  std::vector<std::string> names;
  const bool is_dotted = word.find('.') != std::string_view::npos;
  for (const ScenarioKey& key : scenario_keys())
    for (const std::string_view name : {key.name, key.alias})
      if (!name.empty())
        names.push_back(is_dotted && !key.table.empty() ? fmt::format("{}.{}", key.table, name)
                                                        : std::string{name});
  throw InputError(place, fmt::format("unknown key '{}'{}", word, did_you_mean(word, names)));
}

// Table, key and path of a word; the value stays empty.
Setting target_of(std::string_view word, const Place& place) {
  Setting setting{.word = std::string{word}};
  const std::size_t dot = word.find('.');
  if (dot == std::string_view::npos) {
    for (const ScenarioKey& key : scenario_keys())
      if (key.name == word || (!key.alias.empty() && key.alias == word)) {
        setting.key = &key;
        setting.table = key.table;
        return setting;
      }
    unknown(word, place);
  }
  const auto tables = scenario_tables();
  const auto table = std::find(tables.begin(), tables.end(), word.substr(0, dot));
  if (table == tables.end() || table->empty()) unknown(word, place);
  setting.table = *table;
  std::string_view rest = word.substr(dot + 1);
  setting.key = find_key(*table, rest);
  if (setting.key) return setting;
  if (!is_free(*table)) unknown(word, place);
  while (true) {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    if (end == 0) throw InputError(place, fmt::format("'{}' has an empty part", word));
    setting.path.emplace_back(rest.substr(0, end));
    if (end == rest.size()) return setting;
    rest.remove_prefix(end + 1);
  }
}

struct Parts {
  std::string_view word, value;
};
Parts split(std::string_view text, const Place& place) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || trimmed(text.substr(0, equals)).empty())
    throw InputError(place, "write KEY=VALUE, e.g. tp=4");
  return {trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1))};
}

// The end of the first item of a list: a comma that is in no brackets and no quotes.
std::size_t item_end(std::string_view list) {
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      return i;
    }
  }
  return list.size();
}

// Keys that nobody typed: those of a config.json written in the scenario.
void apply_to_model(const Setting& setting, ModelChoice& model) {
  if (!model.preset.empty() || !model.hf_config.empty())
    throw InputError(setting.value.place,
                     fmt::format("'{}' needs a model whose keys are written in the scenario; this "
                                 "one has {} '{}'",
                                 setting.word, model.preset.empty() ? "hf_config" : "preset",
                                 model.preset.empty() ? model.hf_config : model.preset));
  Value table{{}, Table{}};
  if (!model.inline_json.empty()) table = parse_json_document(model.inline_json, "");
  model.inline_json = to_json(overlaid(std::move(table), as_table(setting)));
}

}  // namespace

Setting parse_setting(std::string_view text) {
  check_utf8(text, "--set");
  const Place place{one_line(fmt::format("--set {}", text))};
  const Parts parts = split(text, place);
  Setting setting = target_of(parts.word, place);
  setting.value = parsed_value(parts.value, place);
  return setting;
}

std::vector<Setting> parse_axis(std::string_view text) {
  check_utf8(text, "--axis");
  const Place place{one_line(fmt::format("--axis {}", text))};
  const Parts parts = split(text, place);
  const Setting target = target_of(parts.word, place);
  std::vector<Setting> settings;
  std::string_view left = parts.value;
  while (true) {
    const std::size_t end = item_end(left);
    settings.push_back(target);
    settings.back().value = parsed_value(trimmed(left.substr(0, end)), place);
    if (end == left.size()) return settings;
    left.remove_prefix(end + 1);
  }
}

Value as_table(const Setting& setting) {
  Value value = setting.value;
  const Place place = value.place;
  std::vector<std::string> path = setting.path;
  if (setting.key) path = {std::string{setting.key->name}};
  for (auto word = path.rbegin(); word != path.rend(); ++word)
    value = {place, Table{Member{*word, place, {std::move(value)}}}};
  return value;
}

void apply(const Setting& setting, Scenario& scenario) {
  if (setting.key) {
    std::string problem = set_key(scenario, *setting.key, setting.value, setting.word);
    if (!problem.empty()) throw InputError(setting.value.place, std::move(problem));
  } else if (setting.table == "model") {
    apply_to_model(setting, scenario.model);
  } else {
    ASSERT(setting.table == "cluster");
    const Value table = cluster_table(scenario.cluster);
    scenario.cluster = cluster_choice(overlaid_cluster(table, named_machine(as_table(setting))));
  }
}

}  // namespace rehearse
