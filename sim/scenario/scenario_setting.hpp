// `key=value` as --set and --axis have it: parsed once, assigned as often as wanted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario_keys.hpp"

namespace rehearse {

/// One value for one key. `key` is null where the table is free: the keys of [model] and [cluster]
/// are those of other files, and `path` leads there ("fabric", "bandwidth").
struct Setting {
  std::string_view table;
  const ScenarioKey* key = nullptr;
  std::vector<std::string> path;
  std::string word;  // the key as the user wrote it
  Value value;       // its place is the whole text: "--set tp=4"
};

/// "tp=4", "parallelism.tp=4", "cluster.fabric.bandwidth=200Gbps". The value is TOML's; what is
/// none, and bare words, are strings. Throws InputError with a suggestion for an unknown key.
Setting parse_setting(std::string_view text);

/// "tp=1,2,4,8": one setting for each value. Commas inside brackets and quotes separate nothing.
std::vector<Setting> parse_axis(std::string_view text);

/// Throws InputError at the setting's place. Gives the same scenario as the same line in a file
/// that extends the first one.
void apply(const Setting& setting, Scenario& scenario);

/// The value as a table with nothing else in it: {fabric: {bandwidth: "200Gbps"}}.
Value as_table(const Setting& setting);

}  // namespace rehearse
