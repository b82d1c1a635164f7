// Runs the table of broken configs, and a few broken choices of models.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/workload/workload.hpp"
#include "tests/bad_input/folder.hpp"
#include "tests/bad_input/model_cases.hpp"

namespace rehearse::bad_input::model_files_test {
namespace {

std::string message_of(const ModelChoice& choice) {
  try {
    build_workload(choice);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

class ModelFiles : public testing::TestWithParam<Case> {};

TEST_P(ModelFiles, GiveExactlyThisMessage) {
  const Folder folder{GetParam()};
  EXPECT_EQ(message_of({.hf_config = GetParam().file}), GetParam().message);
}

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Table, ModelFiles, testing::ValuesIn(model_cases), name_of);

TEST(ModelChoices, SayWhatIsWrong) {
  EXPECT_EQ(message_of({.preset = "gpt3-175"}),
            "error: unknown model 'gpt3-175'; did you mean 'gpt3-175b'?");
  EXPECT_EQ(message_of({}),
            "error: [model] must have one of preset, hf_config, or a model's own keys, not 0");
  EXPECT_EQ(message_of({.preset = "gpt2", .hf_config = "gpt2.json"}),
            "error: [model] must have one of preset, hf_config, or a model's own keys, not 2");
  // In a scenario every key counts.
  EXPECT_EQ(message_of({.inline_json = R"({"model_type": "mlp", "layer_size": [1, 2]})"}),
            "error: unknown key 'layer_size'; did you mean 'layer_sizes'?");
  EXPECT_EQ(message_of({.inline_json = R"({"hidden_size": 768})"}),
            "error: [model] needs the key 'model_type'");
}

}  // namespace
}  // namespace rehearse::bad_input::model_files_test
