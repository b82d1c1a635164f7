// Scenarios through the command line: files, standard input, and a scenario as a cluster.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/shell.hpp"

namespace rehearse::scenario_test {
namespace {

class ScenarioCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "rehearse-scenario-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    std::ofstream{path_ / "s.toml"} << "[model]\npreset = \"llama-3-8b\"\n"
                                       "[cluster]\nname = \"dgx-h100\"\nnodes = 2\n"
                                       "[parallelism]\ntp = 8\n[training]\ngbs = 128\n";
    std::ofstream{path_ / "longer.toml"} << "extends = \"s.toml\"\n[training]\nseq = 4096\n";
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string in(const std::string& line) const { return "cd " + path_.string() + " && " + line; }

  std::filesystem::path path_;
  const std::string summary_ =
      "ok, llama-3-8b: 32 blocks, 8,030,261,248 parameters; 16 ranks: tp 8 × pp 1 × cp 1 × dp 2; "
      "64 micro-batches\n";
};

TEST_F(ScenarioCommand, IsValidatedFromAFileAndFromStandardInput) {
  expect_outcome(in("$R validate s.toml"), 0, "s.toml: " + summary_);
  expect_outcome(in("$R validate longer.toml"), 0, "longer.toml: " + summary_);
  expect_outcome(in("cat s.toml | $R validate -"), 0, "-: " + summary_);
  expect_outcome(in("echo '{\"model\": {\"preset\": \"llama-3-8b\"}, \"cluster\": {\"name\": "
                    "\"dgx-h100\", \"nodes\": 2}, \"parallelism\": {\"tp\": 8}, \"training\": "
                    "{\"gbs\": 128}}' | $R validate -"),
                 0, "-: " + summary_);
}

TEST_F(ScenarioCommand, SaysWhereInStandardInput) {
  expect_outcome(
      in("sed 's/tp = 8/tp = 3/' s.toml | $R validate -"), 2,
      "<stdin>:7:6: error: tp 3 × pp 1 × cp 1 = 3 does not divide world 16\n"
      "<stdin>:7:6: error: 32 attention heads do not divide by tp 3\n"
      "<stdin>:7:6: error: 8 key-value heads and tp 3: neither divides the other\n"
      "<stdin>:7:6: error: 14336 columns of the MLP (intermediate_size) do not divide by "
      "tp 3\n");
}

TEST_F(ScenarioCommand, IsAClusterToThoseWhoWantOne) {
  const Outcome shown = shell(in("$R topo show s.toml"));
  EXPECT_EQ(shown.exit_code, 0) << shown.text;
  EXPECT_NE(shown.text.find("16"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::scenario_test
