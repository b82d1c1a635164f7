// Runs the table of broken scenarios: each gives exactly its message, all mistakes at once.
#include <gtest/gtest.h>

#include <set>

#include "strategies/predict/check_scenario.hpp"
#include "tests/bad_input/cases.hpp"
#include "tests/bad_input/folder.hpp"

namespace rehearse::bad_input::scenario_files_test {
namespace {

class ScenarioFiles : public testing::TestWithParam<Case> {};

TEST_P(ScenarioFiles, GiveExactlyThisMessage) {
  const Case& broken = GetParam();
  const Folder folder{broken};
  try {
    check_scenario(load_scenario(broken.file));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), broken.message);
  }
}

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Table, ScenarioFiles, testing::ValuesIn(all_scenario_cases()), name_of);

TEST(ScenarioFileTable, IsLongAndHasNoNameTwice) {
  std::set<std::string> names;
  for (const Case& broken : all_scenario_cases()) names.insert(broken.name);
  EXPECT_EQ(names.size(), all_scenario_cases().size());
  EXPECT_GE(names.size(), 80u);
}

}  // namespace
}  // namespace rehearse::bad_input::scenario_files_test
