// `rehearse predict` of runs with many steps: parameter servers and local SGD.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/scenario_file.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::servers_test {
namespace {

using nlohmann::json;

constexpr std::string_view served = R"(schema = 1
[model]
preset = "resnet-50"
[cluster]
name = "dgx-1"
nodes = 6
gpus_per_node = 1
fabric = { kind = "star", bandwidth = "25Gbps", latency = "5us" }
[training]
micro_batch_size = 32
dtype = "fp16"
optimizer = "momentum"
epochs = 90
samples_per_epoch = "1.28M"
[parameter_server]
servers = 2
server_mode = "asynchronous"
steps_per_worker = 8
)";

Outcome predict(const std::string& options) {
  const TemporaryFile file{std::string{served}};
  return shell("$R predict " + file.path() + " " + options);
}

json predicted(const std::string& options) {
  const Outcome outcome = predict(options + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  return json::parse(outcome.text, nullptr, false);
}

TEST(PredictServers, TellsUpdatesStalenessLoadAndSteps) {
  const json told = predicted("");
  EXPECT_EQ(told["workers"], 4);
  EXPECT_EQ(told["servers"], 2);
  EXPECT_GT(told["updates_per_s"], 0);
  EXPECT_NEAR(told["samples_per_s"].get<double>(), 32 * told["updates_per_s"].get<double>(), 1e-6);
  for (const char* const spread : {"step_time_s", "staleness", "queue_wait_s"})
    for (const char* const figure : {"mean", "min", "p50", "p90", "max", "count"})
      EXPECT_TRUE(told[spread].contains(figure)) << spread << ' ' << figure;
  EXPECT_LE(told["staleness"]["p50"], told["staleness"]["p90"]);
  EXPECT_LE(told["staleness"]["p90"], told["staleness"]["max"]);
  std::size_t pushes = 0;
  for (const json& count : told["staleness_histogram"]) pushes += count.get<std::size_t>();
  EXPECT_EQ(pushes, told["staleness"]["count"]);
  EXPECT_GT(told["server_busy"], 0);
  EXPECT_LE(told["busiest_server"], 1);
  EXPECT_NE(predict("").text.find("staleness (versions)"), std::string::npos);
}

TEST(PredictServers, GivesTheSameBytesFoldedOrNot) {
  json folded = predicted(""), whole = predicted("--no-fold");
  EXPECT_LT(folded["simulation"]["ops"], whole["simulation"]["ops"]);
  for (const char* const key : {"updates_per_s", "makespan_s", "window_s", "step_time_s"})
    EXPECT_EQ(folded[key], whole[key]) << key;
  json again = predicted("");
  again.erase("simulation"), folded.erase("simulation");
  EXPECT_EQ(again, folded);
}

TEST(PredictServers, WritesAWorkerPerRowAndATrace) {
  const Outcome csv = predict("--csv -");
  ASSERT_EQ(csv.exit_code, 0);
  EXPECT_EQ(std::count(csv.text.begin(), csv.text.end(), '\n'), 5);  // a heading and four workers
  const Outcome trace = predict("--trace -");
  ASSERT_EQ(trace.exit_code, 0) << trace.text.substr(0, 200);
  const json events = json::parse(trace.text, nullptr, false);
  ASSERT_TRUE(events.contains("traceEvents"));
  EXPECT_NE(trace.text.find("\"queue 0\""), std::string::npos);
  EXPECT_NE(trace.text.find("apply"), std::string::npos);
}

#ifdef REHEARSE_HAS_SIMGRID
TEST(PredictServers, AsksTheReferenceEngine) {
  const json told = predicted("--engine simgrid");
  const double ours = told["makespan_s"], theirs = told["reference_makespan_s"];
  EXPECT_NEAR(ours, theirs, 1e-3 * ours);
}
#endif

TEST(PredictServers, ExplainsTheWholeTraining) {
  const json told = predicted("--set gradient_noise_scale=1024");
  EXPECT_EQ(told["training"]["steps"], std::ceil(90 * 1.28e6 / 128));
  const Outcome words = predict("--set gradient_noise_scale=1024");
  EXPECT_NE(words.text.find("parallel efficiency"), std::string::npos) << words.text;
  // A batch of 128 against a noise scale of 1,024: 1 / (1 + 1/8).
  EXPECT_NE(words.text.find("worth 88.9 % of one in a small batch"), std::string::npos);
}

TEST(PredictServers, SweepsOverServersAndModes) {
  const TemporaryFile file{std::string{served}};
  const Outcome outcome = shell("$R sweep " + file.path() +
                                " --axis servers=1,2 --axis server_mode=synchronous,asynchronous");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("4 points: 4 predicted"), std::string::npos) << outcome.text;
}

TEST(PredictServers, SaysWhyNotWithExitCode2) {
  const Outcome outcome = predict("--set zero_stage=1");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.text.find("ZeRO cuts the optimizer's state"), std::string::npos);
}

TEST(PredictLocalSgd, TellsEveryKindOfStep) {
  const TemporaryFile file{std::string{served.substr(0, served.find("[parameter_server]"))}};
  const Outcome outcome =
      shell("$R predict " + file.path() +
            " --set interval=4 --set interval_kind=post_local --set synchronous_steps=2 --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  const json told = json::parse(outcome.text, nullptr, false);
  const json& local = told["local_sgd"];
  EXPECT_EQ(local["simulated_steps"], 6);
  EXPECT_EQ(local["synchronous"]["steps"], 2);
  EXPECT_EQ(local["local"]["steps"], 3);
  EXPECT_EQ(local["averaging"]["steps"], 1);
  const double sum = 2 * local["synchronous"]["mean_s"].get<double>() +
                     3 * local["local"]["mean_s"].get<double>() +
                     local["averaging"]["mean_s"].get<double>();
  EXPECT_NEAR(sum, 6 * told["step_time_s"].get<double>(), 1e-9);
}

}  // namespace
}  // namespace rehearse::servers_test
