// Which model a scenario trains, as its file says it.
#pragma once

#include <string>

namespace rehearse {

/// [model]: one of a preset's name, a Hugging Face config, or the same keys inline; made into a
/// Workload by sim/workload/workload.hpp. The text form is kept, so that a Scenario prints and
/// compares.
struct ModelChoice {
  std::string preset;       // "gpt3-175b", "resnet-50"
  std::string hf_config;    // a file
  std::string inline_json;  // the keys of a config.json written in the scenario itself
  friend bool operator==(const ModelChoice&, const ModelChoice&) = default;
};

}  // namespace rehearse
