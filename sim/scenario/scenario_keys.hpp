// Every key of a scenario, in one table: its name, its short name, what it may be, where it goes
// and what it means. Files, --set, the axes of a sweep and the docs are all read from this table;
// to add a key, add its member in scenario.hpp and a line in scenario_keys.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "sim/scenario/scenario.hpp"
#include "topology/files/document.hpp"

namespace rehearse {

// What a key may be. `at` is its place in a Scenario.

struct TextField {
  std::string& (*at)(Scenario&);
};
struct FileField {  // looked for beside the file that names it
  std::string& (*at)(Scenario&);
};
struct FlagField {
  bool& (*at)(Scenario&);
};
struct CountField {
  std::size_t& (*at)(Scenario&);
  std::size_t least, most;
};
struct MaybeCountField {
  std::optional<std::size_t>& (*at)(Scenario&);
  std::size_t most;  // at least 1
};
struct CountsField {
  std::vector<std::size_t>& (*at)(Scenario&);
  std::size_t most;
};
struct ShareField {  // from 0 to below 1
  double& (*at)(Scenario&);
};
struct MaybeNumberField {  // 0 or above
  std::optional<double>& (*at)(Scenario&);
};
struct NumberField {
  double& (*at)(Scenario&);
  double least, most;
};
struct TimeField {  // "2us"
  Time& (*at)(Scenario&);
};
struct AmountField {  // "300B", or a number; above 0
  double& (*at)(Scenario&);
};
struct BytesField {  // "25MiB"; above 0
  Bytes& (*at)(Scenario&);
};
struct ChoiceField {
  std::span<const std::string_view> words;
  std::size_t (*get)(const Scenario&);
  void (*set)(Scenario&, std::size_t);
};
struct PriceField {};                 // "2.50 USD": an amount and its currency
struct DistributedOptimizerField {};  // Megatron's word for zero_stage 1
struct FileOnlyField {                // means something to the reader of a file only
  std::string_view type;
};

using ScenarioField =
    std::variant<TextField, FileField, FlagField, CountField, MaybeCountField, CountsField,
                 ShareField, MaybeNumberField, NumberField, TimeField, AmountField, BytesField,
                 ChoiceField, PriceField, DistributedOptimizerField, FileOnlyField>;

struct ScenarioKey {
  std::string_view table;  // "parallelism"; "" for the top of the file
  std::string_view name, alias;
  ScenarioField field;
  std::string_view help;
  /// Keys with the same answer here are alternatives: one of them in a file, the last one set wins.
  std::string_view decides = {};
  /// Takes back what the alternatives said.
  void (*displace)(Scenario&) = nullptr;
};

/// In the order of the docs, table by table.
std::span<const ScenarioKey> scenario_keys();
/// By name or alias; null when that table has no such key. (`model` and `cluster` are short for
/// their most common key on a command line; in a file they are the tables.)
const ScenarioKey* find_key(std::string_view table, std::string_view word);
/// "", "model", "cluster" …
std::span<const std::string_view> scenario_tables();

/// Assigns `value`. Gives what is wrong with it, or an empty text; then it was assigned.
/// `word` is what the user called the key.
std::string set_key(Scenario& scenario, const ScenarioKey& key, const Value& value,
                    std::string_view word);

/// As a TOML value; an empty text when there is none to give.
std::string value_text(const ScenarioKey& key, const Scenario& scenario);

/// The docs of all keys, as a table in Markdown and as lines for a terminal.
std::string scenario_keys_markdown();
std::string scenario_keys_help();

}  // namespace rehearse
