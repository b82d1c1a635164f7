// One sample for each kind of field.
#include "tests/support/scenario_samples.hpp"
#include "tests/support/places.hpp"

#include <fmt/format.h>

namespace rehearse {

namespace {

struct Sample {
  const ScenarioKey& key;

  std::string operator()(const TextField&) const {
    if (key.name == "name") return "\"dgx-1\"";
    return key.name == "preset" ? "\"bert-base\"" : fmt::format("\"some {}\"", key.name);
  }
  std::string operator()(const FileField&) const {
    return fmt::format("\"{}\"", REHEARSE_SOURCE_DIR "/scenarios/models/gpt2.json");
  }
  std::string operator()(const FlagField& field) const {
    Scenario plain;
    return field.at(plain) ? "false" : "true";
  }
  std::string operator()(const CountField& field) const { return fmt::to_string(field.least + 2); }
  std::string operator()(const MaybeCountField&) const { return "3"; }
  std::string operator()(const CountsField&) const { return "[3, 0, 5]"; }
  std::string operator()(const ShareField&) const { return "0.25"; }
  std::string operator()(const MaybeNumberField&) const { return "0.5"; }
  std::string operator()(const NumberField& field) const {
    return fmt::to_string((field.least + field.most) / 2);
  }
  std::string operator()(const TimeField&) const { return "\"7us\""; }
  std::string operator()(const AmountField&) const { return "\"1.5B\""; }
  std::string operator()(const BytesField&) const { return "\"7MiB\""; }
  std::string operator()(const ChoiceField& field) const {
    const std::size_t other = field.get({}) == 0 ? 1 : 0;
    return fmt::format("\"{}\"", field.words[other]);
  }
  std::string operator()(const PriceField&) const { return "\"2.5 USD\""; }
  std::string operator()(const DistributedOptimizerField&) const { return "true"; }
  std::string operator()(const FileOnlyField&) const { return ""; }
};

}  // namespace

std::string sample_value(const ScenarioKey& key) { return std::visit(Sample{key}, key.field); }

}  // namespace rehearse
