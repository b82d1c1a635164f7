// Reading scenarios: a file is laid over the one it extends key by key, then --set over both.
#include "sim/scenario/scenario_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "sim/scenario/scenario_cluster.hpp"
#include "sim/scenario/scenario_setting.hpp"
#include "sim/workload/hf_config.hpp"
#include "topology/files/readings.hpp"
#include "topology/files/text_file.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse {

namespace {

Value parse_any_document(std::string_view text, const std::string& file) {
  // TOML cannot begin with a brace, so standard input needs no ending to tell.
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw InputError(Place{file}, "is empty");
  return text[first] == '{' ? parse_json_document(text, file) : parse_document(text, file);
}

std::string text_of(const std::string& file) {
  return file == "-" ? read_standard_input() : read_text_file(file);
}

class ScenarioReader {
 public:
  LoadedScenario loaded;
  Problems problems;

  void read(std::string_view text, const std::string& file, std::vector<std::string> chain);
  void apply_setting(const std::string& text);
  void finish();

 private:
  void read_base(const Value& name, std::vector<std::string> chain);
  void read_members(const Value& table, std::string_view name);
  void read_model(const Value& table);
  void read_cluster_table(const Value& table);
  void read_member(const Member& member, const ScenarioKey& key);
  void complain(const Place& place, std::string message) {
    problems.push_back({place, std::move(message)});
  }
  // What cannot go on has problems of its own; they stand beside those found so far.
  template <class Work>
  void gather(Work work) {
    try {
      work();
    } catch (const InputError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  void check_alternatives(const Table& members, std::string_view table);
  void check_complete();
  void check_files();

  void build();

  std::optional<Value> cluster_;
  std::optional<Value> model_;  // its inline keys, as far as they stand
};

void ScenarioReader::read(std::string_view text, const std::string& file,
                          std::vector<std::string> chain) {
  chain.push_back(file);
  const Value document = parse_any_document(text, file);
  if (const Value* base = document.find("extends")) read_base(*base, chain);
  read_members(document, "");
  for (const Member& member : *document.table()) {
    const auto tables = scenario_tables();
    const bool is_table =
        !member.key.empty() && std::find(tables.begin(), tables.end(), member.key) != tables.end();
    if (!is_table) continue;
    const Value& table = member.value.front();
    loaded.places.insert_or_assign(fmt::format("[{}]", member.key), member.key_place);
    if (!table.table())
      complain(table.place, wrong_type(member.key, table, "a table"));
    else if (member.key == "model")
      read_model(table);
    else if (member.key == "cluster")
      read_cluster_table(table);
    else
      read_members(table, member.key);
  }
}

void ScenarioReader::read_base(const Value& name, std::vector<std::string> chain) {
  if (!name.text()) return complain(name.place, wrong_type("extends", name, "a string"));
  const std::string file = path_beside(*name.text(), name.place);
  const bool is_cycle = std::find(chain.begin(), chain.end(), file) != chain.end();
  if (is_cycle) {
    chain.push_back(file);
    return complain(name.place,
                    fmt::format("'extends' goes in a circle: {}", fmt::join(chain, " -> ")));
  }
  std::error_code status;
  if (!std::filesystem::exists(file, status))
    return complain(name.place, fmt::format("no such file: '{}'", *name.text()));
  gather([&] { read(read_text_file(file), file, std::move(chain)); });
}

std::vector<std::string> words_of(std::string_view table) {
  std::vector<std::string> words;
  for (const ScenarioKey& key : scenario_keys())
    for (const std::string_view word : {key.name, key.alias})
      if (key.table == table && !word.empty()) words.emplace_back(word);
  if (table.empty())
    for (const std::string_view name : scenario_tables().subspan(1)) words.emplace_back(name);
  return words;
}

// Where a word would have been right: spelled otherwise, or in another table.
std::string hint_for(std::string_view word, std::string_view table) {
  for (const std::string_view other : scenario_tables())
    if (other != table && find_key(other, word))
      return other.empty() ? "; it belongs at the top of the file"
                           : fmt::format("; it belongs in [{}]", other);
  std::string hint = did_you_mean(word, words_of(table));
  for (const std::string_view other : scenario_tables().subspan(1)) {
    if (!hint.empty()) break;
    hint = did_you_mean(word, words_of(other));
    if (!hint.empty()) hint.insert(hint.size() - 1, fmt::format(" in [{}]", other));
  }
  return hint;
}

void ScenarioReader::read_members(const Value& table, std::string_view name) {
  check_alternatives(*table.table(), name);
  const auto tables = scenario_tables();
  for (const Member& member : *table.table()) {
    const bool is_table = name.empty() && !member.key.empty() &&
                          std::find(tables.begin(), tables.end(), member.key) != tables.end();
    if (is_table) continue;
    const ScenarioKey* key = find_key(name, member.key);
    if (key)
      read_member(member, *key);
    else
      complain(member.key_place,
               fmt::format("unknown key '{}'{}", member.key, hint_for(member.key, name)));
  }
}

void ScenarioReader::read_member(const Member& member, const ScenarioKey& key) {
  const Value& value = member.value.front();
  if (key.name == "extends" && key.table.empty()) return;  // was read first
  if (key.name == "schema") {
    Reading<std::size_t> schema = read_count(value, "schema", 1, 1);
    if (!schema.value) complain(value.place, std::move(schema.problem));
    return;
  }
  std::string problem = set_key(loaded.scenario, key, value, member.key);
  if (!problem.empty()) return complain(value.place, std::move(problem));
  loaded.places.insert_or_assign(std::string{key.name}, value.place);
}

// Two names for one key, or two keys for one answer.
void ScenarioReader::check_alternatives(const Table& members, std::string_view table) {
  std::vector<std::pair<const ScenarioKey*, const Member*>> given;
  for (const Member& member : members) {
    const ScenarioKey* key = find_key(table, member.key);
    if (!key) continue;
    for (const auto& [other, earlier] : given) {
      if (other == key)
        complain(member.key_place,
                 fmt::format("'{}' and '{}' are the same key", earlier->key, member.key));
      else if (!key->decides.empty() && key->decides == other->decides)
        complain(member.key_place,
                 fmt::format("'{}' and '{}' both say {}", earlier->key, member.key, key->decides));
    }
    given.emplace_back(key, &member);
  }
}

// A preset, a file, or the keys of a config.json, which are kept as they are.
void ScenarioReader::read_model(const Value& table) {
  check_alternatives(*table.table(), "model");
  Value inline_keys{table.place, Table{}};
  const Member* named = nullptr;
  for (const Member& member : *table.table()) {
    if (const ScenarioKey* key = find_key("model", member.key)) {
      named = &member;
      read_member(member, *key);
    } else {
      std::get<Table>(inline_keys.data).push_back(member);
    }
  }
  const Table& members = *inline_keys.table();
  if (members.empty()) return;
  if (named) {
    const std::string hint = hint_for(members.front().key, "model");
    return complain(members.front().key_place,
                    hint.empty() ? fmt::format("'{}' and '{}' both say what the model is",
                                               named->key, members.front().key)
                                 : fmt::format("unknown key '{}'{}", members.front().key, hint));
  }
  ModelChoice& model = loaded.scenario.model;
  const bool is_changed = model_ && !model.inline_json.empty();
  model_ = is_changed ? overlaid(std::move(*model_), inline_keys) : inline_keys;
  gather([&] { model = {.inline_json = to_json(*model_)}; });
}

void ScenarioReader::read_cluster_table(const Value& table) {
  const Value named = named_machine(table);
  cluster_ = cluster_ ? overlaid_cluster(std::move(*cluster_), named) : named;
}

void ScenarioReader::apply_setting(const std::string& text) {
  gather([&] {
    const Setting setting = parse_setting(text);
    if (setting.table == "cluster")
      read_cluster_table(as_table(setting));
    else
      apply(setting, loaded.scenario);
    if (setting.table == "model" && !setting.key)
      model_ = model_ ? overlaid(std::move(*model_), as_table(setting)) : as_table(setting);
    if (setting.key)
      loaded.places.insert_or_assign(std::string{setting.key->name}, setting.value.place);
  });
}

void ScenarioReader::check_complete() {
  const Scenario& s = loaded.scenario;
  const Place whole{loaded.file};
  if (s.model == ModelChoice{} && !loaded.places.contains("[model]"))
    complain(whole, "a scenario needs a [model]");
  else if (s.model == ModelChoice{} && problems.empty())
    complain(loaded.places["[model]"], "[model] is empty: write preset, hf_config or its keys");
  if (!cluster_) complain(whole, "a scenario needs a [cluster]");
  const Training& t = s.training;
  if (t.samples_per_epoch > 0 && t.epochs == 0 && loaded.places.contains("samples_per_epoch"))
    complain(loaded.places["samples_per_epoch"], "'samples_per_epoch' needs 'epochs'");
}

void ScenarioReader::check_files() {
  const auto check = [&](const char* key, const std::string& file) {
    std::error_code status;
    if (!file.empty() && !std::filesystem::exists(file, status))
      complain(loaded.places[key], fmt::format("{}: no such file: '{}'", key, file));
  };
  check("hf_config", loaded.scenario.model.hf_config);
  check("schedule_csv", loaded.scenario.parallelism.schedule_csv);
  check("calibration", loaded.scenario.calibration);
}

// The model and the machine that the keys describe; their readers know what is wrong with them.
void ScenarioReader::build() {
  const ModelChoice& model = loaded.scenario.model;
  const char* key = model.preset.empty() ? "hf_config" : "preset";
  std::error_code status;
  if (!model.inline_json.empty())
    gather([&] { loaded.workload = rehearse::read_model(*model_, "", UnknownKeys::refused); });
  else if (!model.preset.empty() || std::filesystem::exists(model.hf_config, status))
    gather([&] {
      loaded.workload = at_place(loaded.places[key], [&] { return build_workload(model); });
    });
  if (!cluster_) return;
  for (const char* name : {"nodes", "gpus_per_node", "extends"})
    if (const Value* value = cluster_->find(name))
      loaded.places.insert_or_assign(name == std::string_view{"extends"} ? "name" : name,
                                     value->place);
  gather([&] { loaded.scenario.cluster = cluster_choice(*cluster_); });
  gather([&] { loaded.topology = read_cluster(*cluster_, loaded.file); });
}

void ScenarioReader::finish() {
  check_complete();
  check_files();
  build();
  throw_if_any(std::move(problems));
}

}  // namespace

Problems LoadedScenario::placed(std::span<const KeyProblem> unplaced) const {
  Problems all;
  for (const KeyProblem& problem : unplaced) {
    Place place{file};
    for (const std::string& key : problem.keys)
      if (const auto at = places.find(key); at != places.end()) {
        place = at->second;
        break;
      }
    all.push_back({place, problem.message});
  }
  return all;
}

LoadedScenario parse_scenario(std::string_view text, const std::string& file,
                              std::span<const std::string> sets) {
  ScenarioReader reader;
  reader.loaded.file = file == "-" ? "<stdin>" : file;
  reader.read(text, reader.loaded.file, {});
  for (const std::string& set : sets) reader.apply_setting(set);
  reader.finish();
  return std::move(reader.loaded);
}

LoadedScenario load_scenario(const std::string& file, std::span<const std::string> sets) {
  return parse_scenario(text_of(file), file, sets);
}

}  // namespace rehearse
