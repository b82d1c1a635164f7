// Random scenarios: printed and read back they are equal, in TOML and JSON, and a key set on the
// command line, in an axis, or in a file that extends another is the same key.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "sim/base/amount_text.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/scenario/scenario_cluster.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/scenario_setting.hpp"
#include "tests/support/places.hpp"

namespace rehearse::scenario_test {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_{seed} {}
  std::size_t below(std::size_t n) { return generator_() % n; }
  template <class T>
  T from(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

 private:
  std::mt19937_64 generator_;
};

// A legal value of a key in TOML's words, with the corners among them; "" for keys of files.
struct ValueOf {
  Draw& draw;
  const ScenarioKey& key;

  std::string operator()(const TextField&) const {
    if (key.name == "preset") return draw.from({"\"gpt2\"", "\"llama-3-8b\"", "\"gpt3-175b\""});
    if (key.name == "name") return draw.from({"\"ring-8\"", "\"dgx-1\"", "\"dgx-h100\""});
    return draw.from({"\"\"", "\"auto\"", "\"a \\\"b\\\" \\\\ \\t c\"", "\"ü → \\u0001 \\u007f\"",
                      "\"two\\nlines\"", "\"# no comment = [x]\""});
  }
  std::string operator()(const FileField&) const {
    return "\"" REHEARSE_SOURCE_DIR "/scenarios/models/gpt2.json\"";
  }
  std::string operator()(const FlagField&) const { return draw.from({"true", "false"}); }
  std::string operator()(const CountField& f) const {
    return fmt::to_string(draw.from({f.least, f.most, f.least + (f.most - f.least) / 3}));
  }
  std::string operator()(const MaybeCountField& f) const {
    return key.table == "cluster" ? "1" : fmt::to_string(1 + draw.below(f.most));
  }
  std::string operator()(const CountsField&) const {
    return draw.from({"[]", "[0]", "[3, 4, 5]", "[1048576, 0]"});
  }
  std::string operator()(const ShareField&) const {
    return draw.from({"0", "0.1", "1e-9", "0.9999999999999999", "0.30000000000000004"});
  }
  std::string operator()(const MaybeNumberField&) const {
    return draw.from({"0", "1", "0.1", "2.5", "1e300", "0.30000000000000004"});
  }
  std::string operator()(const NumberField& f) const {
    return fmt::to_string(draw.from({f.least, f.most, (f.least + f.most) / 2}));
  }
  std::string operator()(const TimeField&) const {
    return draw.from({"\"2us\"", "\"1.5ms\"", "\"850ns\""});
  }
  std::string operator()(const AmountField&) const {
    return draw.from({"\"15T\"", "\"1.28M\"", "1", "3e11", "0.1", "1281167", "1e300", "\"7k\""});
  }
  std::string operator()(const BytesField&) const {
    return draw.from({"\"1B\"", "\"25MiB\"", "\"100MB\"", "\"1.5GiB\"", "\"9000000001B\""});
  }
  std::string operator()(const ChoiceField& f) const {
    return fmt::format("\"{}\"", f.words[draw.below(f.words.size())]);
  }
  std::string operator()(const PriceField&) const {
    return draw.from({"\"2.50 USD\"", "\"0 EUR\"", "\"1e-3 €\"", "\"0.1 tokens\""});
  }
  std::string operator()(const DistributedOptimizerField&) const {
    return draw.from({"true", "false"});
  }
  std::string operator()(const FileOnlyField&) const { return ""; }
};

std::string random_value(Draw& draw, const ScenarioKey& key) {
  return std::visit(ValueOf{draw, key}, key.field);
}

// Any keys, but one of each set of alternatives, and epochs whenever something counts in them.
std::string random_text(Draw& draw) {
  std::string text;
  std::vector<std::string_view> decided;
  for (const std::string_view table : scenario_tables()) {
    if (!table.empty()) text += fmt::format("[{}]\n", table);
    for (const ScenarioKey& key : scenario_keys()) {
      if (key.table != table || (draw.below(3) != 0 && table != "model" && table != "cluster"))
        continue;
      const std::string value = random_value(draw, key);
      const bool is_decided = !key.decides.empty() && std::find(decided.begin(), decided.end(),
                                                                key.decides) != decided.end();
      if (value.empty() || is_decided || key.name == "samples_per_epoch") continue;
      decided.push_back(key.decides);
      text += fmt::format(
          "{} = {}\n",
          draw.below(2) == 0 || key.alias.empty() || key.alias == table ? key.name : key.alias,
          value);
    }
  }
  return text;
}

TEST(RandomScenarios, ReadBackEqual) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw{seed};
    const std::string text = random_text(draw);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const LoadedScenario loaded = parse_scenario(text, "s.toml");
    const std::string printed = to_toml(loaded.scenario);
    const LoadedScenario again = parse_scenario(printed, "again.toml");
    EXPECT_EQ(again.scenario, loaded.scenario) << printed;
    EXPECT_EQ(to_toml(again.scenario), printed);
    EXPECT_EQ(again.workload, loaded.workload);
    EXPECT_EQ(topology_of(loaded.scenario.cluster), loaded.topology);
    EXPECT_EQ(fingerprint(again.scenario), fingerprint(loaded.scenario));
    const std::string json = to_json(parse_toml_document(text, "s.toml"));
    EXPECT_EQ(parse_scenario(json, "s.json").scenario, loaded.scenario) << json;
  }
}

TEST(RandomScenarios, TakeSettingsAsFilesTakeLines) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw{1000 + seed};
    const std::string text = random_text(draw);
    std::vector<std::string> sets;
    for (int i = 0; i < 3; ++i) {
      const ScenarioKey& key = scenario_keys()[draw.below(scenario_keys().size())];
      const std::string value = random_value(draw, key);
      if (value.empty() || key.name == "samples_per_epoch") continue;
      sets.push_back(fmt::format("{}={}", key.name, value));
    }
    SCOPED_TRACE(fmt::format("seed {}: {}\n{}", seed, fmt::join(sets, ", "), text));
    Scenario one_by_one = parse_scenario(text, "s.toml").scenario;
    for (const std::string& set : sets) apply(parse_setting(set), one_by_one);
    EXPECT_EQ(parse_scenario(text, "s.toml", sets).scenario, one_by_one);
    EXPECT_EQ(parse_scenario(to_toml(one_by_one), "again.toml").scenario, one_by_one);
  }
}

}  // namespace
}  // namespace rehearse::scenario_test
