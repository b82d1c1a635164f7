// Scenarios in and out of files: TOML or JSON, `extends`, --set, strictly. Every mistake has its
// place, and all of them are told at once.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/workload/workload.hpp"
#include "topology/files/fields.hpp"
#include "topology/topology.hpp"

namespace rehearse {

struct LoadedScenario {
  Scenario scenario;
  Workload workload;
  Topology topology;
  std::string file;
  std::map<std::string, Place, std::less<>> places;  // of the keys that were given, by long name

  /// The problems where the first of their keys that was given stands; else at the file.
  Problems placed(std::span<const KeyProblem> problems) const;
};

/// A file, or "-" for standard input; each of `sets` is "tp=4" or "parallelism.tp=4". Throws
/// InputError. Names of files in the result are as seen from the current folder.
LoadedScenario load_scenario(const std::string& file, std::span<const std::string> sets = {});
/// The same for a text already read.
LoadedScenario parse_scenario(std::string_view text, const std::string& file,
                              std::span<const std::string> sets = {});

/// Whether this is a scenario (and not a cluster by itself).
bool is_scenario(std::string_view text, const std::string& file);

/// What differs from the defaults, as a scenario file that reads back to an equal Scenario.
std::string to_toml(const Scenario& scenario);
/// 16 digits, the same wherever its files lie: what to compare two reports by.
std::string fingerprint(const Scenario& scenario);

}  // namespace rehearse
