// Any bytes as a scenario, in TOML or JSON, and any first line of them as a setting: read or
// refused, and what is read comes back equal from its own text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/assert.hpp"
#include "sim/scenario/scenario_cluster.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/scenario_setting.hpp"

namespace {

using namespace rehearse;

void read_twice(std::string_view text) {
  const LoadedScenario loaded = parse_scenario(text, "fuzz.toml");
  if (loaded.topology.links().size() > 2000) return;  // a second of building finds nothing new
  const LoadedScenario again = parse_scenario(to_toml(loaded.scenario), "again.toml");
  ASSERT(again.scenario == loaded.scenario);
  ASSERT(again.workload == loaded.workload);
  ASSERT(again.topology == loaded.topology);
}

void set_one(std::string_view line) {
  Scenario scenario;
  for (const Setting& setting : parse_axis(line)) apply(setting, scenario);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  try {
    read_twice(text);
  } catch (const InputError& error) {
    ASSERT(!error.problems().empty());
  }
  try {
    set_one(text.substr(0, text.find('\n')));
  } catch (const InputError& error) {
    ASSERT(!error.problems().empty());
  }
  return 0;
}
