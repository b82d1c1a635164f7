// `rehearse predict`: what it promises to scripts, to readers, and to trace viewers.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/scenario_file.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::predict_test {
namespace {

using nlohmann::json;

json predict(const std::string& options) {
  const TemporaryFile file(small_scenario);
  const Outcome outcome = shell("$R predict " + file.path() + " " + options + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  return json::parse(outcome.text, nullptr, false);
}

std::vector<std::string> keys_of(const std::string& object) {
  std::vector<std::string> keys;
  const auto parsed = nlohmann::ordered_json::parse(object, nullptr, false);
  for (const auto& [key, value] : parsed.items()) keys.push_back(key);
  return keys;
}

TEST(PredictSeeds, GiveADistributionThatThreadsDoNotChange) {
  const std::string jitter = "--no-advice --set kernel_jitter=0.1 --set seeds=12 ";
  const json one = predict(jitter + "--threads 1"), many = predict(jitter + "--threads 5");
  const json& times = one["step_time_distribution"];
  EXPECT_EQ(times, many["step_time_distribution"]);
  EXPECT_EQ(one["step_time_ps"], many["step_time_ps"]);
  EXPECT_EQ(one["seed"], 1);
  EXPECT_EQ(times["seeds"], 12);
  const std::vector<std::string> order{"min_s", "p50_s", "p90_s", "p99_s", "max_s"};
  for (std::size_t i = 1; i < order.size(); ++i) EXPECT_LE(times[order[i - 1]], times[order[i]]);
  EXPECT_LT(times["min_s"], times["max_s"]);
  EXPECT_NE(predict(jitter + "--set seed=99")["step_time_ps"], one["step_time_ps"]);
  EXPECT_TRUE(predict("--no-advice")["seed"].is_null()) << "nothing is drawn";
}

TEST(PredictSeeds, AreNamedInTheSummary) {
  const TemporaryFile file(small_scenario);
  const Outcome outcome = shell("$R predict --quiet --no-advice " + file.path() +
                                " --set rank_jitter=0.1 --set seed=41 --set seeds=3");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.text.find("seed 41 (and up to 43 for the distribution)"), std::string::npos);
  EXPECT_NE(outcome.text.find("step time over 3 seeds (ms): mean "), std::string::npos);
  EXPECT_NE(outcome.text.find("with     jitter of each rank 10 % (lognormal)"), std::string::npos);
}

TEST(PredictJson, HasExactlyThePromisedKeysInTheirOrder) {
  const TemporaryFile file(small_scenario);
  const Outcome outcome = shell("$R predict " + file.path() + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_EQ(keys_of(outcome.text), (std::vector<std::string>{"title",
                                                             "question",
                                                             "model",
                                                             "parameters",
                                                             "cluster",
                                                             "ranks",
                                                             "parallelism",
                                                             "micro_batch_size",
                                                             "global_batch_size",
                                                             "microbatches",
                                                             "step_time_s",
                                                             "step_time_ps",
                                                             "step_time_low_s",
                                                             "step_time_high_s",
                                                             "samples_per_s",
                                                             "tokens_per_s",
                                                             "model_tflops_per_gpu",
                                                             "peak_tflops_per_gpu",
                                                             "mfu",
                                                             "bubble_fraction",
                                                             "exposed_communication_s",
                                                             "exposed_communication_by_dimension_s",
                                                             "compute_s",
                                                             "peak_memory_bytes",
                                                             "capacity_bytes",
                                                             "fits",
                                                             "roles",
                                                             "breakdown",
                                                             "verdict",
                                                             "training",
                                                             "seed",
                                                             "step_time_distribution",
                                                             "average_step_time_s",
                                                             "reference_step_time_s",
                                                             "simulation",
                                                             "calibration",
                                                             "scenario_hash",
                                                             "version"}));
}

TEST(PredictJson, AddsUp) {
  const json told = predict("");
  const double step = told["step_time_s"];
  EXPECT_EQ(told["ranks"], 16);
  EXPECT_EQ(told["parallelism"]["data"], 4);
  EXPECT_EQ(told["parallelism"]["style"], "MPMD");
  EXPECT_EQ(told["parameters"], 124439808) << "GPT-2 small";
  EXPECT_NEAR(told["samples_per_s"].get<double>() * step, 32, 1e-9);
  EXPECT_NEAR(told["tokens_per_s"].get<double>() * step, 32 * 1024, 1e-6);
  EXPECT_NEAR(
      told["model_tflops_per_gpu"].get<double>() / told["peak_tflops_per_gpu"].get<double>(),
      told["mfu"], 1e-12);
  double exposed = 0;
  for (const auto& [dimension, time] : told["exposed_communication_by_dimension_s"].items())
    exposed += time.get<double>();
  EXPECT_NEAR(exposed, told["exposed_communication_s"], 1e-11);
  EXPECT_NEAR(
      told["compute_s"].get<double>() + exposed + told["bubble_fraction"].get<double>() * step,
      step, 1e-10);
  double parts = 0;
  for (const auto& [name, time] : told["breakdown"].items()) parts += time.get<double>();
  EXPECT_NEAR(parts, step, 1e-9);
  int ranks = 0;
  std::int64_t most = 0;
  for (const json& role : told["roles"]) {
    ranks += role["ranks"].get<int>();
    most = std::max(most, role["peak_memory_bytes"].get<std::int64_t>());
    std::int64_t sum = 0;
    for (const auto& [kind, bytes] : role["memory_bytes"].items()) sum += bytes.get<std::int64_t>();
    EXPECT_EQ(sum, role["peak_memory_bytes"]) << role["name"];
  }
  EXPECT_EQ(ranks, 16);
  EXPECT_EQ(most, told["peak_memory_bytes"]);
  EXPECT_EQ(told["training"]["steps"], std::ceil(1e9 / (32 * 1024)));
  EXPECT_NEAR(told["training"]["price"].get<double>(),
              2 * told["training"]["gpu_hours"].get<double>(), 1e-6);
  EXPECT_EQ(told["calibration"], "catalog figures, not calibrated");
}

TEST(Predict, FoldedAndUnfoldedAreTheSame) {
  const json folded = predict("--no-advice"), whole = predict("--no-advice --no-fold");
  EXPECT_EQ(folded["step_time_ps"], whole["step_time_ps"]);
  EXPECT_LT(folded["roles"].size(), whole["roles"].size());
  EXPECT_EQ(whole["roles"].size(), 16u);
}

TEST(Predict, SimGridAgreesWithEveryTransferSimulated) {
  const TemporaryFile file(small_scenario);
  const Outcome outcome =
      shell("$R predict " + file.path() + " --no-advice --engine simgrid --json -");
  if (outcome.exit_code == 77) GTEST_SKIP() << outcome.text;
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  const json told = json::parse(outcome.text, nullptr, false);
  const double step = told["step_time_s"];
  EXPECT_NEAR(told["reference_step_time_s"], step, 0.005 * step);
  EXPECT_EQ(told["simulation"]["engine"], "simgrid");
}

TEST(Predict, WhatDoesNotFitIsPredictedAndSaid) {
  const TemporaryFile file(small_scenario);
  const Outcome outcome = shell("$R predict " + file.path() +
                                " --set model=megatron-18b --set tp=1 --set pp=1 --set dp=16");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("DOES NOT FIT"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("It does not fit: "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("these fit, the fastest first"), std::string::npos) << outcome.text;
}

TEST(Predict, AdviceIsWhatPredictSaysOfIt) {
  const json told = predict("");
  ASSERT_FALSE(told["verdict"]["better"].empty()) << told["verdict"];
  for (const json& better : told["verdict"]["better"]) {
    std::string sets;
    for (const json& set : better["set"]) sets += " --set " + set.get<std::string>();
    const json there = predict("--no-advice" + sets);
    EXPECT_EQ(there["step_time_s"], better["step_time_s"]) << sets;
    EXPECT_EQ(there["peak_memory_bytes"], better["peak_memory_bytes"]) << sets;
  }
}

TEST(PredictCsv, HasARowForEachRole) {
  const TemporaryFile file(small_scenario);
  const Outcome outcome = shell("$R predict " + file.path() + " --no-advice --csv -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  std::istringstream lines(outcome.text);
  std::string header, row;
  std::getline(lines, header);
  EXPECT_TRUE(header.starts_with("role,rank,ranks,step_ms,compute_ms,bubble_ms,exposed_tensor_ms"))
      << header;
  std::size_t rows = 0;
  while (std::getline(lines, row)) ++rows;
  EXPECT_EQ(rows, predict("--no-advice")["roles"].size());
}

TEST(PredictTrace, IsWhatViewersAndHtaExpect) {
  const TemporaryFile file(small_scenario);
  const Outcome outcome = shell("$R predict " + file.path() + " --no-advice --trace -");
  ASSERT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.text.find("\"rank\": 0"), std::string::npos) << "HTA wants the space";
  const json trace = json::parse(outcome.text, nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;
  std::set<std::string> names, actions;
  std::size_t counters = 0;
  double end = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "C") ++counters;
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], length = event["dur"];
    slices[{event["pid"], event["tid"]}].emplace_back(begin, begin + length);
    if (event["cat"] != "kernel") continue;
    end = std::max(end, begin + length);
    names.insert(event["name"]);
    if (event["args"].contains("action")) actions.insert(event["args"]["action"]);
    if (!event["name"].get<std::string>().starts_with("nccl")) continue;
    for (const char* const key : {"Collective name", "In msg nelems", "Out msg nelems",
                                  "Group size", "dtype", "Process Group Name"})
      EXPECT_TRUE(event["args"].contains(key)) << event;
  }
  for (auto& [track, spans] : slices) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i)
      EXPECT_LE(spans[i - 1].second, spans[i].first + 1e-6)
          << "pid " << track.first << " tid " << track.second;
  }
  EXPECT_TRUE(names.contains("ncclDevKernel_AllReduce_Sum_bf16"));
  EXPECT_TRUE(names.contains("ncclDevKernel_SendRecv"));
  EXPECT_TRUE(names.contains("attention.qkv"));
  EXPECT_TRUE(actions.contains("0F3") && actions.contains("1B7"));
  EXPECT_GE(counters, 20u) << "two roles, eight micro-batches: at least as many changes of memory";
  EXPECT_NEAR(end * 1e-6, predict("--no-advice")["step_time_s"], 1e-3) << "but for flights";
}

TEST(PredictMistakes, AreOneLineAndExitCode2) {
  const TemporaryFile file(small_scenario);
  const auto fails = [&](const std::string& options, const std::string& line) {
    const Outcome outcome = shell("$R predict " + options);
    EXPECT_EQ(outcome.exit_code, 2) << options << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(line), std::string::npos) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  };
  fails("nowhere.toml", "nowhere.toml");
  fails(file.path() + " --set tpp=2", "unknown key 'tpp'");
  fails(file.path() + " --set tp=3", "tp 3");
  fails(file.path() + " --engine fst", "unknown engine 'fst'; did you mean 'fast'?");
  fails(file.path() + " --json - --csv -", "standard output (-) is for one of");
  fails(file.path() + " --trace-ranks 0", "there is no --trace");
  fails(file.path() + " --trace - --trace-ranks 99", "there are 16 ranks");
  fails(file.path() + " --trace /dev/null --trace-ranks 15", "is played by another");
  fails("", "SCENARIO");
}

}  // namespace
}  // namespace rehearse::predict_test
