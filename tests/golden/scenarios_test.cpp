// Every scenario runs, and says what it said when its report was last reviewed. `golden_tests
// --update` rewrites the reports; the difference is for review.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/support/places.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::scenarios_test {
namespace {

namespace fs = std::filesystem;
const fs::path source{REHEARSE_SOURCE_DIR};

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> scenarios() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(source / "scenarios")) {
    if (entry.path().extension() != ".toml") continue;
    if (read(entry.path()).find("\nquestion = ") != std::string::npos)
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool updates() {
  const std::vector<std::string> words = testing::internal::GetArgvs();
  return std::find(words.begin(), words.end(), "--update") != words.end();
}

// What depends on the machine that runs the test.
std::string masked(const std::string& text) {
  static const std::regex wall("simulated in [0-9.]+ s"), commit("rehearse [0-9.]+,");
  return std::regex_replace(std::regex_replace(text, wall, "simulated in # s"), commit,
                            "rehearse #,");
}

class Scenario : public testing::TestWithParam<std::string> {};

TEST_P(Scenario, ReportsWhatWasReviewed) {
  const fs::path golden = source / "tests" / "golden" / (GetParam() + ".txt");
  const std::string file = (source / "scenarios" / (GetParam() + ".toml")).string();
  const Outcome outcome = shell("$R predict --quiet '" + file + "'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  const std::string report = masked(outcome.text);
  if (updates()) {
    std::ofstream(golden, std::ios::binary) << report;
    return;
  }
  ASSERT_TRUE(fs::exists(golden)) << "golden_tests --update writes it";
  EXPECT_EQ(report, read(golden)) << "if this is meant to be so: golden_tests --update";
}

INSTANTIATE_TEST_SUITE_P(All, Scenario, testing::ValuesIn(scenarios()),
                         [](const testing::TestParamInfo<std::string>& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Scenarios, AreADozenAtLeastAndEachIsInTheReadme) {
  const std::vector<std::string> names = scenarios();
  EXPECT_GE(names.size(), 12u);
  const std::string readme = read(source / "scenarios" / "README.md");
  for (const std::string& name : names)
    EXPECT_NE(readme.find("`" + name + ".toml`"), std::string::npos) << name;
}

}  // namespace
}  // namespace rehearse::scenarios_test
