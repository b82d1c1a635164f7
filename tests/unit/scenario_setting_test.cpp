// --set and --axis: which key a word means, what a value is, and the same answer as in a file.
#include "sim/scenario/scenario_setting.hpp"

#include <gtest/gtest.h>

#include "sim/base/amount_text.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "tests/support/scenario_samples.hpp"

namespace rehearse::scenario_setting_test {
namespace {

std::string error_of(const std::string& text) {
  try {
    Scenario scenario;
    apply(parse_setting(text), scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

Scenario with(const std::string& text) {
  Scenario scenario;
  apply(parse_setting(text), scenario);
  return scenario;
}

TEST(Setting, TakesValuesAsTomlAndBareWordsAsStrings) {
  EXPECT_EQ(with("tp=4").parallelism.tensor, 4u);
  EXPECT_EQ(with(" tp = 1_024 ").parallelism.tensor, 1024u);
  EXPECT_EQ(with("dtype=fp8").training.precision, Precision::fp8);
  EXPECT_EQ(with("dtype=\"fp8\"").training.precision, Precision::fp8);
  EXPECT_EQ(with("schedule=1F1B").parallelism.schedule, "1F1B");
  EXPECT_EQ(with("order=tp-pp-dp").parallelism.order, "tp-pp-dp");
  EXPECT_EQ(with("sequence_parallel=true").parallelism.sequence_parallel, true);
  EXPECT_EQ(with("layers_per_stage=[3, 4]").parallelism.layers_per_stage,
            (std::vector<std::size_t>{3, 4}));
  EXPECT_EQ(with("price_per_gpu_hour=2.50 USD").training.price_per_gpu_hour, 2.5);
  EXPECT_EQ(with("tokens=15T").training.tokens, 15e12);
  EXPECT_EQ(with("tokens=3e11").training.tokens, 300e9);
  EXPECT_EQ(with("bucket_size=100MB").parallelism.bucket_size, Bytes{100'000'000});
  EXPECT_EQ(with("title=a = b").title, "a = b");
  EXPECT_EQ(with("title=1\nq = 2").title, "1\nq = 2");
  EXPECT_EQ(with("title=2024-01-01").title, "2024-01-01");
}

TEST(Setting, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("tp=x"), "--set tp=x: error: 'tp' must be a whole number, not a string");
  EXPECT_EQ(error_of("tp=0"), "--set tp=0: error: 'tp' must be at least 1, not 0");
  EXPECT_EQ(error_of("tp="), "--set tp=: error: 'tp' must be a whole number, not a string");
  EXPECT_EQ(error_of("tp"), "--set tp: error: write KEY=VALUE, e.g. tp=4");
  EXPECT_EQ(error_of("=4"), "--set =4: error: write KEY=VALUE, e.g. tp=4");
  EXPECT_EQ(error_of("gsb=4"), "--set gsb=4: error: unknown key 'gsb'; did you mean 'gbs'?");
  EXPECT_EQ(error_of("micro_batch=4"),
            "--set micro_batch=4: error: unknown key 'micro_batch'; did you mean "
            "'micro_batch_size'?");
  EXPECT_EQ(error_of("parallelism.tensor_parallel_size=4"),
            "--set parallelism.tensor_parallel_size=4: error: unknown key "
            "'parallelism.tensor_parallel_size'; did you mean "
            "'parallelism.tensor_model_parallel_size'?");
  EXPECT_EQ(error_of("paralelism.tp=4"),
            "--set paralelism.tp=4: error: unknown key 'paralelism.tp'; did you mean "
            "'parallelism.tp'?");
  EXPECT_EQ(error_of("bucket_size=25"),
            "--set bucket_size=25: error: bucket_size: missing unit: 25; write e.g. \"25MiB\"");
  EXPECT_EQ(error_of("schema=1"), "--set schema=1: error: 'schema' has a meaning in a file only");
  EXPECT_EQ(error_of("cluster..x=1"), "--set cluster..x=1: error: 'cluster..x' has an empty part");
  Scenario preset{.model = {.preset = "gpt2"}};
  EXPECT_THROW(apply(parse_setting("model.hidden_size=1"), preset), InputError);
}

TEST(Setting, TakesBackTheAlternative) {
  Scenario scenario{.parallelism = {.schedule_csv = "x.csv"}, .training = {.tokens = 5}};
  apply(parse_setting("schedule=GPipe"), scenario);
  EXPECT_EQ(scenario.parallelism.schedule_csv, "");
  apply(parse_setting("schedule_csv=y.csv"), scenario);
  EXPECT_EQ(scenario.parallelism.schedule, "1F1B");
  apply(parse_setting("epochs=5"), scenario);
  EXPECT_EQ(scenario.training.tokens, 0);
  apply(parse_setting("use_distributed_optimizer=true"), scenario);
  EXPECT_EQ(scenario.parallelism.zero_stage, 1u);
  apply(parse_setting("zero_stage=3"), scenario);
  EXPECT_EQ(scenario.parallelism.zero_stage, 3u);
}

TEST(Axis, IsOneSettingForEachValue) {
  std::vector<std::size_t> sizes;
  for (const Setting& setting : parse_axis("tp=1, 2,4")) {
    Scenario scenario;
    apply(setting, scenario);
    sizes.push_back(scenario.parallelism.tensor);
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 2, 4}));
  EXPECT_EQ(parse_axis("layers_per_stage=[1,2],[2,1]").size(), 2u);
  EXPECT_EQ(parse_axis("title=\"a,b\",c").size(), 2u);
  EXPECT_EQ(parse_axis("cluster.fabric.latency=1us,2us")[1].path,
            (std::vector<std::string>{"fabric", "latency"}));
  Scenario scenario;
  try {
    apply(parse_axis("tp=1,,2")[1], scenario);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "--axis tp=1,,2: error: 'tp' must be a whole number, not a string");
  }
}

TEST(Setting, IsTextInItsKeyAndInItsValue) {
  for (const char* text : {"cluster.exten\xe4.latency=1us", "dtype=\xe4"}) try {
      parse_setting(text);
      ADD_FAILURE() << "taken as text";
    } catch (const InputError& error) {
      EXPECT_NE(std::string{error.what()}.find("error: byte 0xe4 is not UTF-8 text"),
                std::string::npos)
          << error.what();
    }
  EXPECT_THROW(parse_axis("cluster.exten\xe4.latency=1us,2us"), InputError);
}

TEST(Setting, IsWhatALineInAFileIs) {
  const std::string texts[] = {"cluster.fabric.latency=\"9us\"",
                               "cluster.nodes=3",
                               "nodes=3",
                               "cluster=dgx-a100",
                               "cluster.node.gpus=2",
                               "model=bert-large"};
  const std::string base =
      "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"dgx-h100\"\nnodes = 2\n";
  for (const std::string& text : texts) {
    Scenario scenario = parse_scenario(base, "s.toml").scenario;
    apply(parse_setting(text), scenario);
    const std::vector<std::string> sets{text};
    EXPECT_EQ(scenario, parse_scenario(base, "s.toml", sets).scenario) << text;
  }
}

TEST(Amount, ReadsAndWritesThousands) {
  EXPECT_EQ(parse_amount("15T"), 15e12);
  EXPECT_EQ(parse_amount("1.28 M"), 1.28e6);
  EXPECT_EQ(parse_amount("50k"), 50e3);
  EXPECT_EQ(parse_amount("7"), 7);
  for (const double amount : {1.0, 0.1, 300e9, 15.6e12, 1281167.0, 1e300, 3.14159265358979})
    EXPECT_EQ(parse_amount(to_text_amount(amount)), amount) << to_text_amount(amount);
  EXPECT_EQ(to_text_amount(300e9), "300B");
  EXPECT_EQ(parse_price("2.50 USD"), (Price{2.5, "USD"}));
  EXPECT_EQ(parse_price("2€"), (Price{2, "€"}));
  for (const char* wrong : {"", "x", "-1B", "1Q", "1e999", "nan", "1 B B"})
    EXPECT_THROW(parse_amount(wrong), InputError) << wrong;
  for (const char* wrong : {"2.50", "USD", "2 US D", "-1 USD", "2 USD/h", "1 2"})
    EXPECT_THROW(parse_price(wrong), InputError) << wrong;
}

}  // namespace
}  // namespace rehearse::scenario_setting_test
