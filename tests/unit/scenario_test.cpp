// Scenarios: every key by every way in, `extends`, what stands when two answers meet, and the text
// that reads back.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/scenario/scenario_cluster.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "tests/support/places.hpp"
#include "tests/support/scenario_samples.hpp"

namespace rehearse::scenario_test {
namespace {

using Sets = std::vector<std::string>;

Scenario parsed(const std::string& text, const Sets& sets = {}) {
  return parse_scenario(text, "s.toml", sets).scenario;
}

std::string error_of(const std::string& text, const Sets& sets = {}) {
  try {
    parse_scenario(text, "s.toml", sets);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// A small scenario with one more key in it; keys of the model and the machine replace theirs.
std::string toml_with(const ScenarioKey& key, std::string_view word) {
  const std::string line = fmt::format("{} = {}\n", word, sample_value(key));
  if (key.table.empty()) return line + small_scenario;
  if (key.table == "model") return "[cluster]\nname = \"ring-8\"\n[model]\n" + line;
  if (key.name == "name") return "[model]\npreset = \"gpt2\"\n[cluster]\n" + line;
  if (key.table == "cluster")
    return "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"dgx-h100\"\n" + line;
  const char* partner = key.name == "samples_per_epoch" ? "epochs = 3\n" : "";
  return fmt::format("{}[{}]\n{}{}", small_scenario, key.table, partner, line);
}

std::string json_with(const ScenarioKey& key) {
  const std::string pair = fmt::format("\"{}\": {}", key.name, sample_value(key));
  const char* partner = key.name == "samples_per_epoch" ? "\"epochs\": 3, " : "";
  const std::string cluster = key.name == "name"       ? pair
                              : key.table == "cluster" ? "\"name\": \"dgx-h100\", " + pair
                                                       : "\"name\": \"ring-8\"";
  const std::string model = key.table == "model" ? pair : "\"preset\": \"gpt2\"";
  std::string text = fmt::format("{{\"model\": {{{}}}, \"cluster\": {{{}}}", model, cluster);
  if (key.table.empty())
    text += ", " + pair;
  else if (key.table != "model" && key.table != "cluster")
    text += fmt::format(", \"{}\": {{{}{}}}", key.table, partner, pair);
  return text + "}";
}

TEST(ScenarioKeys, AreReadByEveryWayIn) {
  std::size_t count = 0;
  for (const ScenarioKey& key : scenario_keys()) {
    if (sample_value(key).empty()) continue;
    SCOPED_TRACE(key.name);
    ++count;
    const LoadedScenario given = parse_scenario(toml_with(key, key.name), "s.toml");
    EXPECT_TRUE(given.places.contains(key.name));
    if (key.name != "use_distributed_optimizer") {
      EXPECT_EQ(value_text(key, given.scenario), sample_value(key));
    }
    EXPECT_EQ(parse_scenario(json_with(key), "s.json").scenario, given.scenario);
    EXPECT_EQ(parse_scenario(json_with(key), "-").scenario, given.scenario);
    EXPECT_EQ(parsed(to_toml(given.scenario)), given.scenario) << to_toml(given.scenario);
    if (!key.alias.empty() && key.alias != key.table) {
      EXPECT_EQ(parsed(toml_with(key, key.alias)), given.scenario);
    }
    std::string base = small_scenario;
    if (key.table == "cluster" && key.name != "name")
      base = "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"dgx-h100\"\n";
    Sets sets;
    if (key.name == "samples_per_epoch") sets.push_back("epochs=3");
    const auto with = [&](std::string word) {
      Sets all = sets;
      all.push_back(word + "=" + sample_value(key));
      return parsed(base, all);
    };
    EXPECT_EQ(with(std::string{key.name}), given.scenario);
    if (!key.table.empty()) {
      EXPECT_EQ(with(fmt::format("{}.{}", key.table, key.name)), given.scenario);
    }
    if (!key.alias.empty()) {
      EXPECT_EQ(with(std::string{key.alias}), given.scenario);
    }
  }
  EXPECT_GE(count, 45u);
}

TEST(ScenarioKeys, HaveOneMeaningEach) {
  std::map<std::string_view, int> words;
  for (const ScenarioKey& key : scenario_keys()) {
    ++words[key.name];
    if (!key.alias.empty()) ++words[key.alias];
    EXPECT_TRUE(!key.help.empty()) << key.name;
  }
  for (const auto& [word, count] : words) EXPECT_EQ(count, 1) << word;
}

TEST(ScenarioKeys, AreTheTableOfTheDocs) {
  std::ifstream file{REHEARSE_SOURCE_DIR "/scenarios/KEYS.md"};
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(scenario_keys_markdown()), std::string::npos)
      << "scenarios/KEYS.md should hold:\n"
      << scenario_keys_markdown();
}

TEST(ScenarioFile, GivesTheMachine) {
  const LoadedScenario loaded = parse_scenario(
      "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"dgx-h100\"\nnodes = 2\n"
      "gpus_per_node = 4\nfabric = { latency = \"3us\" }\n",
      "s.toml");
  EXPECT_EQ(loaded.topology.rank_count(), 8u);
  EXPECT_EQ(topology_of(loaded.scenario.cluster), loaded.topology);
  EXPECT_EQ(loaded.scenario.cluster.name_or_file, "dgx-h100");
  EXPECT_EQ(loaded.scenario.cluster.inline_json, "{\"fabric\": {\"latency\": \"3us\"}}");
  const Scenario again = parsed(to_toml(loaded.scenario));
  EXPECT_EQ(again, loaded.scenario);
}

TEST(ScenarioFile, KeepsTheKeysOfAConfigAsTheyAre) {
  const std::string text =
      "[cluster]\nname = \"ring-8\"\n[model]\nmodel_type = \"mlp\"\nlayer_sizes = [8, 4]\n"
      "bias = false\n";
  const LoadedScenario loaded = parse_scenario(text, "s.toml");
  EXPECT_EQ(loaded.scenario.model.inline_json,
            "{\"bias\": false, \"layer_sizes\": [8, 4], \"model_type\": \"mlp\"}");
  EXPECT_EQ(loaded.workload.parameters(), 32);
  EXPECT_EQ(parsed(to_toml(loaded.scenario)), loaded.scenario);
  const Sets sets{"model.bias=true", "model.layer_sizes=[8, 4, 2]"};
  EXPECT_EQ(parse_scenario(text, "s.toml", sets).workload.parameters(), 8 * 4 + 4 + 4 * 2 + 2);
  EXPECT_EQ(error_of(text + "biass = 3\n", {"model.layer_sizes=3"}),
            "--set model.layer_sizes=3: error: 'layer_sizes' must be a list of 2 to 4097 sizes\n"
            "s.toml:7:1: error: unknown key 'biass'; did you mean 'bias'?");
}

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rehearse-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream{path_ / name} << text;
    return (path_ / name).string();
  }
  std::filesystem::path path_;
};

using ScenarioExtends = Folder;

TEST_F(ScenarioExtends, LaysOneFileOverAnother) {
  write("base/base.toml",
        "title = \"base\"\n[model]\nhf_config = \"config.json\"\n[cluster]\nname = \"dgx-h100\"\n"
        "nodes = 2\nfabric = { latency = \"3us\" }\n[parallelism]\ntp = 8\npp = 2\n"
        "[training]\ngbs = 64\ntokens = \"1T\"\n");
  write("base/config.json",
        "{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, "
        "\"n_positions\": 128, \"vocab_size\": 100}");
  const std::string file =
      write("mine.toml",
            "extends = \"base/base.toml\"\n[cluster]\nnodes = 4\n[parallelism]\n"
            "tensor_model_parallel_size = 4\n[training]\nepochs = 3\nsamples_per_epoch = 1000\n");
  const Scenario scenario = load_scenario(file).scenario;
  EXPECT_EQ(scenario.title, "base");
  EXPECT_EQ(scenario.model.hf_config, (path_ / "base/config.json").string());
  EXPECT_EQ(scenario.cluster.nodes, 4u);
  EXPECT_EQ(scenario.cluster.inline_json, "{\"fabric\": {\"latency\": \"3us\"}}");
  EXPECT_EQ(scenario.parallelism.tensor, 4u);
  EXPECT_EQ(scenario.parallelism.pipeline, 2u);
  EXPECT_EQ(scenario.training.tokens, 0);
  EXPECT_EQ(scenario.training.epochs, 3);
  const Sets other{"cluster=dgx-a100", "model=gpt2"};
  const Scenario replaced = load_scenario(file, other).scenario;
  EXPECT_EQ(replaced.model, ModelChoice{.preset = "gpt2"});
  EXPECT_EQ(replaced.cluster, (ClusterChoice{.name_or_file = "dgx-a100", .nodes = 4}));
}

TEST_F(ScenarioExtends, FindsFilesFromTheFileThatNamesThem) {
  write("base/machines/ring.toml",
        "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\nlatency = \"1us\"\n");
  write("base/base.toml", "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"machines/ring.toml\"\n");
  const std::string file = write("deep/er/mine.toml", "extends = \"../../base/base.toml\"\n");
  const LoadedScenario loaded = load_scenario(file);
  EXPECT_EQ(loaded.topology.rank_count(), 4u);
  EXPECT_EQ(topology_of(loaded.scenario.cluster), loaded.topology);
}

TEST_F(ScenarioExtends, AnotherNodeKeepsTheRestOfTheMachine) {
  const std::string base = write("base.toml",
                                 "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"dgx-h100\"\n"
                                 "nodes = 2\n");
  const Scenario scenario = load_scenario(base, Sets{"cluster.node.gpus=4"}).scenario;
  EXPECT_EQ(scenario.cluster.name_or_file, "dgx-h100");
  EXPECT_EQ(scenario.cluster.inline_json, "{\"node\": {\"gpus\": 4}}");
}

TEST(ScenarioFingerprint, DoesNotSeeFolders) {
  Scenario a, b;
  a.model.hf_config = "models/x.json";
  b.model.hf_config = "../scenarios/models/x.json";
  EXPECT_EQ(fingerprint(a), fingerprint(b));
  b.training.micro_batch_size = 2;
  EXPECT_NE(fingerprint(a), fingerprint(b));
  EXPECT_EQ(fingerprint(a).size(), 16u);
}

TEST(ScenarioFile, TellsScenariosFromClusters) {
  EXPECT_TRUE(is_scenario(small_scenario, "s.toml"));
  EXPECT_TRUE(is_scenario("{\"model\": {}}", "-"));
  EXPECT_FALSE(is_scenario("[cluster]\nname = \"ring-8\"\n", "s.toml"));
  EXPECT_FALSE(is_scenario("extends = \"ring-8\"\n", "s.toml"));
  EXPECT_FALSE(is_scenario("<system/>", "s.xml"));
  EXPECT_FALSE(is_scenario("", "s.toml"));
}

TEST(ScenarioFile, PlacesArithmeticAtItsKey) {
  const LoadedScenario loaded =
      parse_scenario(small_scenario + "[parallelism]\npp = 3\n", "s.toml");
  const KeyProblem problems[] = {
      {{"tensor_model_parallel_size", "pipeline_model_parallel_size"}, "a"}, {{"order"}, "b"}};
  const Problems placed = loaded.placed(problems);
  EXPECT_EQ(to_string(placed[0]), "s.toml:6:6: error: a");
  EXPECT_EQ(to_string(placed[1]), "s.toml: error: b");
}

TEST(ScenarioFile, TellsAllMistakesAtOnce) {
  EXPECT_EQ(error_of("[cluster]\nname = \"ring-9\"\nnodes = 0\n[parallelism]\ntp = \"x\"\nqq = 1\n",
                     {"gbs=none", "sqe=1"}),
            "--set gbs=none: error: 'gbs' must be a whole number, not a string\n"
            "--set sqe=1: error: unknown key 'sqe'; did you mean 'seq'?\n"
            "s.toml: error: a scenario needs a [model]\n"
            "s.toml:2:8: error: unknown cluster 'ring-9'; did you mean 'ring-8'? (`rehearse topo "
            "show` lists the catalog)\n"
            "s.toml:5:6: error: 'tp' must be a whole number, not a string\n"
            "s.toml:6:1: error: unknown key 'qq'; did you mean 'tp'?");
}

}  // namespace
}  // namespace rehearse::scenario_test
