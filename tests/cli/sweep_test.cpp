// `rehearse sweep`: every point is what `predict` says of it, whatever the threads; nothing is
// dropped in silence.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/scenario_file.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::sweep_test {
namespace {

using nlohmann::json;

Outcome sweep(const std::string& options) {
  const TemporaryFile file(small_scenario);
  return shell("$R sweep " + file.path() + " " + options);
}

json sweep_json(const std::string& options) {
  const Outcome outcome = sweep(options + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  return json::parse(outcome.text, nullptr, false);
}

constexpr const char* many_axes =
    "--axis tp=1,2,4 --axis pp=1,2,3,4 --axis micro_batch_size=1,2 "
    "--axis recompute_granularity=none,full --axis schedule=1F1B,ZBH1 --axis zero_stage=0,1";

TEST(Sweep, PointsAreWhatPredictSays) {
  const TemporaryFile file(small_scenario);
  const json told = sweep_json(many_axes);
  ASSERT_EQ(told["points"].size(), 192u);
  std::size_t compared = 0, number = 0;
  for (const json& point : told["points"]) {
    if (point["status"] != "predicted" || number++ % 2 == 1) continue;
    std::string sets;
    for (const auto& [key, value] : point["set"].items())
      sets += " --set " + key + "=" + value.get<std::string>();
    const Outcome outcome = shell("$R predict " + file.path() + sets + " --no-advice --json -");
    ASSERT_EQ(outcome.exit_code, 0) << sets << outcome.text;
    const json alone = json::parse(outcome.text);
    EXPECT_EQ(alone["step_time_ps"], point["step_time_ps"]) << sets;
    EXPECT_EQ(alone["peak_memory_bytes"], point["peak_memory_bytes"]) << sets;
    EXPECT_EQ(alone["mfu"], point["mfu"]) << sets;
    ++compared;
  }
  EXPECT_GE(compared, 60u);
}

// Keys that change the machine, and keys that draw.
TEST(Sweep, PointsOfOtherMachinesAreToo) {
  const TemporaryFile file(small_scenario);
  const std::string cable = " --set slow_cables=[3] --set kernel_jitter=0.05";
  const json told = sweep_json(
      "--axis cuda_graph=false,true --axis slow_cable_factor=2,9 --axis seed=1,2" + cable);
  ASSERT_EQ(told["points"].size(), 8u);
  std::set<std::int64_t> times;
  for (const json& point : told["points"]) {
    std::string sets = cable;
    for (const auto& [key, value] : point["set"].items())
      sets += " --set " + key + "=" + value.get<std::string>();
    const Outcome outcome = shell("$R predict " + file.path() + sets + " --no-advice --json -");
    ASSERT_EQ(outcome.exit_code, 0) << sets << outcome.text;
    EXPECT_EQ(json::parse(outcome.text)["step_time_ps"], point["step_time_ps"]) << sets;
    times.insert(point["step_time_ps"].get<std::int64_t>());
  }
  EXPECT_EQ(times.size(), 8u) << "each key changes something";
}

TEST(Sweep, GivesTheSameBytesWhateverTheThreads) {
  const Outcome one = sweep(std::string(many_axes) + " --threads 1 --csv -");
  const Outcome three = sweep(std::string(many_axes) + " --threads 3 --csv -");
  ASSERT_EQ(one.exit_code, 0) << one.text;
  EXPECT_EQ(one.text, three.text);
  EXPECT_EQ(sweep_json(std::string(many_axes) + " --threads 1"),
            sweep_json(std::string(many_axes) + " --threads 4"));
}

TEST(SweepCsv, HasARowForEveryPointWithAllColumns) {
  const Outcome outcome = sweep("--axis tp=1,2,3 --axis mbs=1,2 --csv -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  std::istringstream lines(outcome.text);
  std::string header, row;
  std::getline(lines, header);
  EXPECT_TRUE(header.starts_with("tp,mbs,status,best,fits,ranks,")) << header;
  const auto columns = std::count(header.begin(), header.end(), ',');
  std::size_t rows = 0, uneven = 0, best = 0;
  while (std::getline(lines, row)) {
    ++rows;
    uneven += row.find(",uneven,") != row.npos;
    best += row.find(",predicted,1,") != row.npos;
    EXPECT_GE(std::count(row.begin(), row.end(), ','), columns) << row;
  }
  EXPECT_EQ(rows, 6u);
  EXPECT_EQ(uneven, 2u) << "tp 3 divides neither 16 ranks nor 12 heads by 2";
  EXPECT_EQ(best, 1u);
}

TEST(SweepText, TellsWhyPointsAreMissing) {
  const Outcome outcome = sweep("--axis tp=1,2,3,5");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("4 points: 2 predicted"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("2 do not come out even:"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("▶ "), std::string::npos) << "the best is marked\n" << outcome.text;
}

TEST(SweepScaling, FitsAmdahlAndGustafson) {
  const std::string alone = "--set tp=1 --set pp=1 --set gbs=64 --axis nodes=1..8*2";
  const json strong = sweep_json(alone);
  ASSERT_EQ(strong["scaling"].size(), 1u);
  EXPECT_EQ(strong["scaling"][0]["kind"], "strong");
  EXPECT_EQ(strong["scaling"][0]["samples"].size(), 4u);
  EXPECT_EQ(strong["scaling"][0]["samples"][0]["efficiency"], 1);
  EXPECT_GT(strong["scaling"][0]["serial_fraction"], 0);
  EXPECT_LT(strong["scaling"][0]["serial_fraction"], 1);
  const json weak = sweep_json(
      "--set tp=1 --set pp=1 --set gbs=4 --set scaling=weak "
      "--axis nodes=1..8*2");
  EXPECT_EQ(weak["scaling"][0]["kind"], "weak");
  EXPECT_LT(weak["scaling"][0]["serial_fraction"], strong["scaling"][0]["serial_fraction"]);
  const Outcome drawn = sweep("--set tp=1 --set pp=1 --axis nodes=1,2,4");
  EXPECT_NE(drawn.text.find("serial fraction fitted (Amdahl)"), std::string::npos) << drawn.text;
}

TEST(Sweep, InterruptedWritesWhatIsThere) {
  const TemporaryFile csv("", ".csv");
  const Outcome outcome = sweep(
      "--set model=gpt3-175b --set nodes=128 --set tp=8 --set gbs=1536 --axis pp=8,16 "
      "--axis bucket_size=1MB,2MB,3MB,4MB,5MB,6MB,7MB,8MB,9MB --axis prefetch_layers=0..500 "
      "--csv " +
      csv.path() + " & sleep 1; kill -INT $!; wait $!");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("error: interrupted"), std::string::npos) << outcome.text;
  const Outcome rows = shell("wc -l < " + csv.path() + "; grep -c not_run " + csv.path());
  std::istringstream numbers(rows.text);
  int all = 0, not_run = 0;
  numbers >> all >> not_run;
  EXPECT_EQ(all, 1 + 2 * 9 * 501);
  EXPECT_GT(not_run, 0);
}

TEST(SweepMistakes, AreOneLineAndExitCode2) {
  const auto fails = [&](const std::string& options, const std::string& line) {
    const Outcome outcome = sweep(options);
    EXPECT_EQ(outcome.exit_code, 2) << options << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(line), std::string::npos) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  };
  fails("", "a sweep needs at least one --axis");
  fails("--axis tpp=1,2", "unknown key 'tpp'");
  fails("--axis tp", "KEY=VALUE");
  fails("--axis tp=1,two", "--axis tp=1,two");
  fails("--axis tp=1..x", "is no range");
  fails("--axis tp=8..1", "runs upward");
  fails("--axis tp=1..8*1", "never ends");
  fails("--axis tp=0..8*2", "never ends");
  fails("--axis tp=1..99999999", "more than 10000 values");
  fails("--axis tp=1,2,1", "1 is there twice");
  fails("--axis tp=1,2 --axis tensor_model_parallel_size=4", "is an axis already");
  fails("--axis tp=1,2 --threads 0", "--threads 0 must be at least 1");
  fails("--axis tp=1,2 --top 0", "--top 0 must be at least 1");
  fails("--axis tp=1,2 --json - --csv -", "standard output (-) is for one of");
  fails("--axis mbs=1..9999 --axis gbs=1..9999", "more than 10000000 points");
}

}  // namespace
}  // namespace rehearse::sweep_test
