// `rehearse bench`: what it promises to scripts, to readers of nccl-tests' table, and to itself.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/places.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::bench_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json run_json(const std::string& line) {
  const Outcome outcome = shell("$R bench " + line + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << line << "\n" << outcome.text;
  return json::parse(outcome.text, nullptr, false);
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

std::vector<std::int64_t> sizes_of(const std::string& options) {
  std::vector<std::int64_t> sizes;
  const json result = run_json("all_reduce --cluster ring-8 " + options);
  for (const json& row : result["rows"]) sizes.push_back(row["size_bytes"]);
  return sizes;
}

std::vector<std::vector<std::string>> table_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    rows.emplace_back();
    for (std::string word; words >> word;) rows.back().push_back(word);
  }
  return rows;
}

constexpr const char* collectives[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                       "reduce",     "all_to_all",     "send_recv"};

TEST(BenchJson, HasExactlyThePromisedKeys) {
  const json result = run_json("all_reduce --cluster dgx-h100 --nodes 2 -b 8 -e 1G -f 64");
  ASSERT_TRUE(result.is_object());
  ASSERT_GE(result["rows"].size(), 4u);
  for (const json& row : result["rows"]) {
    EXPECT_EQ(keys_of(row), (std::set<std::string>{"size_bytes", "time_us", "algbw_GBs",
                                                   "busbw_GBs", "algorithm", "protocol"}));
    const double size = row["size_bytes"], time = row["time_us"], algbw = row["algbw_GBs"];
    EXPECT_NEAR(algbw, size / time / 1e3, 1e-9 * algbw);
    EXPECT_NEAR(row["busbw_GBs"], algbw * 2 * 15 / 16, 1e-9 * algbw) << "2 (n-1) / n, n = 16";
  }
  EXPECT_EQ(keys_of(result["simulation"]), (std::set<std::string>{"engine", "transfers", "events",
                                                                  "wall_s", "peak_memory_bytes"}));
  EXPECT_EQ(result["simulation"]["engine"], "fast");
  EXPECT_GT(result["simulation"]["transfers"], 0);
  EXPECT_GT(result["simulation"]["peak_memory_bytes"], 1 << 20);
  EXPECT_EQ(result["ranks"], 16);
}

TEST(BenchTable, HasTheColumnsOfNcclTests) {
  for (const std::string collective : collectives) {
    const Outcome outcome = shell("$R bench " + collective + " --cluster dgx-1 -b 1M -e 4M");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
    const bool split = collective == "reduce_scatter" || collective == "all_gather" ||
                       collective == "all_to_all";  // nccl-tests counts what one rank gets of it
    const auto rows = table_rows(outcome.text);
    ASSERT_EQ(rows.size(), 3u) << outcome.text;
    for (const auto& row : rows) {
      ASSERT_EQ(row.size(), 14u) << "size count type redop root, twice time algbw busbw #wrong, "
                                    "and ours\n"
                                 << outcome.text;
      EXPECT_EQ(std::stoll(row[0]), (split ? 8 : 1) * 4 * std::stoll(row[1]));
      EXPECT_EQ(row[2], "float");
      EXPECT_EQ(row[3], collective.find("reduce") == std::string::npos ? "none" : "sum");
      EXPECT_EQ(row[4], collective == "broadcast" || collective == "reduce" ? "0" : "-1");
      for (std::size_t c = 5; c < 9; ++c) EXPECT_EQ(row[c], row[c + 4]) << "in and out of place";
    }
    EXPECT_NE(outcome.text.find("# Avg bus bandwidth    : "), std::string::npos);
  }
}

TEST(BenchSizes, FollowNcclTests) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(sizes_of("-b 8 -e 64"), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(sizes_of("-b 1K -e 1M -f 32"), (Sizes{1024, 32768, 1048576}));
  EXPECT_EQ(sizes_of("-b 100 -e 500 -i 100"), (Sizes{100, 200, 300, 400, 500}));
  EXPECT_EQ(sizes_of("-b 128M -e 128M"), (Sizes{1 << 27}));
  EXPECT_EQ(sizes_of("-b 8 -e 100"), (Sizes{8, 16, 32, 64})) << "the last one still fits";
  EXPECT_EQ(sizes_of("-b 0 -e 0"), (Sizes{0}));
  EXPECT_EQ(sizes_of("-e 8G").size(), 31u) << "from 8 bytes on, if nothing is said";
}

TEST(BenchExplain, NamesEveryCandidateItsTermsAndItsLink) {
  const Outcome outcome =
      shell("$R bench all_reduce --cluster dgx-h100 --nodes 2 -b 64M -e 64M --explain");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  for (const char* const words :
       {"no algorithm can take less than ", "ring/simple", "tree/ll128", "nvls_tree/simple",
        " is full ", "# not tried: collnet: ", "# not tried: halving_doubling: nccl has none such"})
    EXPECT_NE(outcome.text.find(words), std::string::npos) << words << "\n" << outcome.text;
  // Without a library every algorithm is tried.
  const Outcome any = shell("$R bench all_reduce --cluster '" REHEARSE_SOURCE_DIR
                            "/scenarios/two-racks.toml' -b 64M -e 64M --explain");
  for (const char* const words : {"ring/simple", "tree/simple", "halving_doubling/simple",
                                  "hierarchical/simple", "hierarchical_3/simple"})
    EXPECT_NE(any.text.find(words), std::string::npos) << words << "\n" << any.text;
  const auto rows = table_rows(outcome.text);
  ASSERT_EQ(rows.size(), 1u);
  // The first candidate told is the one in the table.
  const std::size_t first = outcome.text.find("#   ", outcome.text.find("can take less"));
  EXPECT_EQ(outcome.text.compare(first + 4, rows[0].back().size(), rows[0].back()), 0)
      << outcome.text;
}

TEST(BenchDetail, FoldedTimesAreThoseOfEveryTransfer) {
  for (const std::string collective : collectives)
    for (const std::string machine : {"dgx-h100 --nodes 3", "dgx-1", "summit --nodes 2"}) {
      const std::string line = collective + " --cluster " + machine + " -b 8 -e 1G -f 128";
      json folded = run_json(line), whole = run_json(line + " --detail transfers");
      EXPECT_EQ(folded["rows"], whole["rows"]) << line;
      EXPECT_LE(folded["simulation"]["transfers"], whole["simulation"]["transfers"]) << line;
    }
}

TEST(BenchEngine, SimGridAgrees) {
  const std::string line = "all_reduce --cluster p40-8 --algorithm ring,tree -b 8 -e 16M -f 32";
  if (shell("$R bench " + line + " --engine simgrid").exit_code == 77)
    GTEST_SKIP() << "this build has no SimGrid";
  const json ours = run_json(line), theirs = run_json(line + " --engine simgrid");
  EXPECT_EQ(theirs["simulation"]["engine"], "simgrid");
  ASSERT_EQ(ours["rows"].size(), theirs["rows"].size());
  for (std::size_t i = 0; i < ours["rows"].size(); ++i) {
    const double time = ours["rows"][i]["time_us"];
    EXPECT_NEAR(theirs["rows"][i]["time_us"], time, 1e-3 * time);
  }
}

TEST(BenchDeterminism, TheSameCommandGivesTheSameBytes) {
  for (const std::string line :
       {"all_reduce --cluster dgx-h100 --nodes 16", "all_to_all --cluster p5 --nodes 2 -e 1G",
        "reduce --cluster summit --nodes 19 -e 64M", "broadcast --cluster dgx-1 --root 5"}) {
    json first = run_json(line), second = run_json(line);
    for (json* result : {&first, &second})
      for (const char* const key : {"wall_s", "peak_memory_bytes"})
        (*result)["simulation"].erase(key);
    EXPECT_EQ(first.dump(), second.dump()) << line;
  }
}

class BenchFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rehearse-bench-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  Outcome run(const std::string& line) const {
    return shell("cd " + folder_.string() + " && " + line);
  }
  fs::path folder_;
};

TEST_F(BenchFiles, TracesAreJsonPlainOrPacked) {
  const std::string line = "$R bench all_reduce --cluster dgx-1 -b 1M -e 1M --trace ";
  ASSERT_EQ(run(line + "plain.json").exit_code, 0);
  ASSERT_EQ(run(line + "packed.json.gz").exit_code, 0);
  const json plain = json::parse(run("cat plain.json").text, nullptr, false);
  ASSERT_TRUE(plain.is_object());
  EXPECT_GT(plain["traceEvents"].size(), 50u);
  EXPECT_EQ(json::parse(run("gzip -dc packed.json.gz").text, nullptr, false), plain);
}

TEST_F(BenchFiles, ADumpedProgramIsTheOneThatWasTimed) {
  for (const std::string collective : collectives) {
    const std::string line = "$R bench " + collective + " --cluster dgx-1 -b 3M -e 3M";
    const Outcome bench = run(line + " --dump-program p.txt --json b.json");
    ASSERT_EQ(bench.exit_code, 0) << bench.text;
    const Outcome verified = run("$R program verify p.txt");
    EXPECT_EQ(verified.exit_code, 0) << collective << "\n" << verified.text;
    const Outcome ran = run("$R program run p.txt --cluster dgx-1 --json r.json");
    ASSERT_EQ(ran.exit_code, 0) << ran.text;
    EXPECT_EQ(json::parse(std::ifstream{folder_ / "r.json"})["makespan_us"],
              json::parse(std::ifstream{folder_ / "b.json"})["rows"][0]["time_us"])
        << collective;
  }
}

TEST_F(BenchFiles, CsvHasTheRowsOfJson) {
  ASSERT_EQ(run("$R bench all_gather --cluster dgx-1 -b 8 -e 64 --csv rows.csv").exit_code, 0);
  std::istringstream lines(run("cat rows.csv").text);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "size_bytes,time_us,algbw_GBs,busbw_GBs,algorithm,protocol");
  std::size_t rows = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 5) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 4u);
}

}  // namespace
}  // namespace rehearse::bench_test
