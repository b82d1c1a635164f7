// Broken cluster, topology and scenario files, each with the exact text its user gets. Tests of the
// library and of the command line both run this table.
#pragma once

#include "tests/bad_input/foreign_cases.hpp"
#include "tests/bad_input/scenario_cases.hpp"
#include "tests/bad_input/scenario_methods.hpp"
#include "tests/bad_input/scenario_servers.hpp"
#include "tests/bad_input/scenario_sums.hpp"
#include "tests/bad_input/toml_cases.hpp"

namespace rehearse::bad_input {

inline std::vector<Case> cluster_cases() {
  std::vector<Case> all = toml_cases;
  all.insert(all.end(), foreign_cases.begin(), foreign_cases.end());
  return all;
}

inline std::vector<Case> all_scenario_cases() {
  std::vector<Case> all = scenario_cases;
  all.insert(all.end(), scenario_sums.begin(), scenario_sums.end());
  all.insert(all.end(), scenario_methods.begin(), scenario_methods.end());
  all.insert(all.end(), scenario_servers.begin(), scenario_servers.end());
  return all;
}

}  // namespace rehearse::bad_input
