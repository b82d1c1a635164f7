// Tables to values and back; and which of two answers about a machine stands.
#include "sim/scenario/scenario_cluster.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "sim/base/assert.hpp"
#include "topology/files/readings.hpp"
#include "topology/files/text_file.hpp"
#include "topology/formats/catalog.hpp"

namespace rehearse {

namespace {

constexpr std::array<std::string_view, 5> node_keys{"node", "device", "nccl_xml", "nvidia_smi",
                                                    "graphml"};

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool names_machine(const Member& member) { return member.key == "extends"; }

// A file that exists beside the one that names it, as seen from here; a catalog's name as it is.
std::string seen_from_here(const Value& name) {
  for (const CatalogEntry& entry : catalog())
    if (entry.name == *name.text()) return *name.text();
  std::string beside = path_beside(*name.text(), name.place);
  std::error_code status;
  return std::filesystem::exists(beside, status) ? beside : *name.text();
}

Member member(std::string key, decltype(Value::data) data) {
  return {std::move(key), {}, {Value{{}, std::move(data)}}};
}

std::optional<std::size_t> count_of(const Value& table, std::string_view key) {
  const Value* value = table.find(key);
  return value ? read_count(*value, key, 1).value : std::nullopt;
}

}  // namespace

ClusterChoice cluster_choice(const Value& table) {
  ClusterChoice choice;
  choice.nodes = count_of(table, "nodes");
  choice.gpus_per_node = count_of(table, "gpus_per_node");
  Value rest{table.place, Table{}};
  for (const Member& given : *table.table()) {
    const Value& value = given.value.front();
    if (given.key == "nodes" || given.key == "gpus_per_node") continue;
    if (names_machine(given)) {
      if (value.text()) choice.name_or_file = seen_from_here(value);
      continue;
    }
    Member kept = given;
    if (contains(node_keys, given.key) && value.text())
      kept.value.front().data = seen_from_here(value);
    std::get<Table>(rest.data).push_back(std::move(kept));
  }
  if (!rest.table()->empty()) choice.inline_json = to_json(rest);
  return choice;
}

Value cluster_table(const ClusterChoice& choice) {
  Value table{{}, Table{}};
  if (!choice.inline_json.empty()) table = parse_json_document(choice.inline_json, "");
  auto& members = std::get<Table>(table.data);
  if (!choice.name_or_file.empty()) members.push_back(member("extends", choice.name_or_file));
  if (choice.nodes) members.push_back(member("nodes", static_cast<std::int64_t>(*choice.nodes)));
  if (choice.gpus_per_node)
    members.push_back(member("gpus_per_node", static_cast<std::int64_t>(*choice.gpus_per_node)));
  return table;
}

Topology topology_of(const ClusterChoice& choice) {
  return read_cluster(cluster_table(choice), "");
}

Value overlaid_cluster(Value base, const Value& changes) {
  ASSERT(base.table() && changes.table());
  auto& members = std::get<Table>(base.data);
  const Table& given = *changes.table();
  if (std::any_of(given.begin(), given.end(), names_machine)) {
    std::erase_if(members,
                  [](const Member& m) { return m.key != "nodes" && m.key != "gpus_per_node"; });
  } else if (std::any_of(given.begin(), given.end(),
                         [](const Member& m) { return contains(node_keys, m.key); })) {
    std::erase_if(members, [&](const Member& m) {
      return (contains(node_keys, m.key) || m.key == "link") && !changes.find(m.key);
    });
  }
  return overlaid(std::move(base), changes);
}

}  // namespace rehearse
