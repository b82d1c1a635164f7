// Scenarios as text: what differs from the defaults, table by table; and what tells a scenario from
// a cluster.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/scenario/scenario_cluster.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

std::string cluster_lines(const ClusterChoice& choice) {
  Value table = cluster_table(choice);
  // The plainest form, where it means the same.
  if (choice.inline_json.empty())
    for (Member& member : std::get<Table>(table.data))
      if (member.key == "extends") member.key = "name";
  return toml_members(table);
}

std::string table_lines(std::string_view table, const Scenario& scenario) {
  if (table == "cluster") return cluster_lines(scenario.cluster);
  std::string lines;
  const Scenario plain;
  for (const ScenarioKey& key : scenario_keys()) {
    if (key.table != table) continue;
    const std::string text = value_text(key, scenario);
    if (text != value_text(key, plain)) lines += fmt::format("{} = {}\n", key.name, text);
  }
  if (table == "model" && !scenario.model.inline_json.empty())
    lines += toml_members(parse_json_document(scenario.model.inline_json, ""));
  return lines;
}

bool is_scenario_file(std::string_view text, const std::string& file, int depth) {
  constexpr std::array<std::string_view, 5> own_keys{"model", "parallelism", "training",
                                                     "collectives", "question"};
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  const Value document =
      text[first] == '{' ? parse_json_document(text, file) : parse_document(text, file);
  for (const std::string_view key : own_keys)
    if (document.find(key)) return true;
  const Value* base = document.find("extends");
  constexpr int deepest = 16;
  if (!base || !base->text() || depth > deepest) return false;
  const std::string beside = path_beside(*base->text(), base->place);
  std::error_code status;
  return std::filesystem::is_regular_file(beside, status) &&
         is_scenario_file(read_text_file(beside), beside, depth + 1);
}

}  // namespace

std::string to_toml(const Scenario& scenario) {
  std::string text = "schema = 1\n";
  for (const std::string_view table : scenario_tables()) {
    const std::string lines = table_lines(table, scenario);
    if (table.empty())
      text += lines;
    else if (!lines.empty())
      text += fmt::format("\n[{}]\n{}", table, lines);
  }
  return text;
}

std::string fingerprint(const Scenario& scenario) {
  // FNV-1a over the text, in which a file is its name without its folder.
  Scenario bare = scenario;
  const auto strip = [](std::string& file) {
    file = std::filesystem::path{file}.filename().string();
  };
  for (const ScenarioKey& key : scenario_keys())
    if (const auto* file = std::get_if<FileField>(&key.field)) strip(file->at(bare));
  strip(bare.cluster.name_or_file);
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : to_toml(bare)) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{:016x}", hash);
}

bool is_scenario(std::string_view text, const std::string& file) {
  try {
    return is_scenario_file(text, file == "-" ? "<stdin>" : file, 0);
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace rehearse
