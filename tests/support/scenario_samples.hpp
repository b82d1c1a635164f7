// Scenarios for tests: a small one as text, and a value for every key.
#pragma once

#include <string>

#include "sim/scenario/scenario_keys.hpp"

namespace rehearse {

inline const std::string small_scenario =
    "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"ring-8\"\n";

/// A value that is not the default, as TOML and JSON both write it; "" for keys of files only.
std::string sample_value(const ScenarioKey& key);

}  // namespace rehearse
