// `rehearse accuracy`: every row is in the JSON, predicted or with its reason; the same bytes
// whatever the threads; mistakes with their lines.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/places.hpp"
#include "tests/support/scenario_file.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::accuracy_test {
namespace {

using nlohmann::json;

constexpr const char* header =
    "case_id,gpu,nodes,gpus_per_node,nics_per_node,nic_gbps,fabric,intra,library_version,"
    "collective,algorithm,protocol,size_bytes,time_us,noisy,source,launch\n";
constexpr const char* published = "'" REHEARSE_SOURCE_DIR "'/scenarios/published/*.csv";

json parsed(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  return json::parse(outcome.text, nullptr, false);
}

TEST(Accuracy, TellsEveryRowAndDropsNone) {
  const TemporaryFile file(std::string(header) +
                               "a,h100-sxm-80gb,1,8,0,0,none,nvswitch,,all_reduce,ring,simple,"
                               "1073741824,5000,0,s,\n"
                               "a,h100-sxm-80gb,1,8,0,0,none,nvswitch,,all_reduce,ring,simple,"
                               "2097152,1,1,s,\n"
                               "b,abacus,1,8,0,0,none,nvswitch,,all_reduce,ring,simple,8,3,0,s,\n"
                               "c,h100-sxm-80gb,1,8,0,0,none,nvswitch,,all_reduce,rong,auto,8,3,"
                               "0,s,\n",
                           ".csv");
  const json told = parsed(shell("$R accuracy " + file.path() + " --json -"));
  ASSERT_EQ(told["rows"].size(), 4u);
  const json& good = told["rows"][0];
  EXPECT_EQ(good["case_id"], "a");
  EXPECT_EQ(good["size_bytes"], 1073741824);
  EXPECT_EQ(good["measured"], 5000.0);
  EXPECT_EQ(good["detail"], "ring simple");
  const double predicted = good["predicted"];
  EXPECT_EQ(good["error"], (predicted - 5000) / 5000);
  EXPECT_EQ(told["rows"][1]["noisy"], true);
  EXPECT_EQ(told["rows"][2]["reason"], "GPU 'abacus' is not in the table of machines");
  EXPECT_TRUE(told["rows"][2]["predicted"].is_null());
  EXPECT_EQ(told["rows"][3]["reason"], "unknown algorithm 'rong'; did you mean 'ring'?");
  const json& whole = told["summary"][0];
  EXPECT_TRUE(whole["sweep"].is_null());
  EXPECT_EQ(whole["rows"], 1) << "neither the noisy row nor what is not predicted is scored";
  EXPECT_EQ(whole["not_predicted"], 2);
  EXPECT_EQ(whole["mape"], std::abs((predicted - 5000) / 5000));
  for (const char* key :
       {"file", "median_ape", "p90_ape", "spearman", "spearman_within_groups", "oom_accuracy"})
    EXPECT_TRUE(whole.contains(key)) << key;
  // What it predicts is what `bench` prints.
  const json bench = parsed(
      shell("$R bench all_reduce --cluster dgx-h100 -b 1G -e 1G --algorithm ring --protocol simple "
            "--json -"));
  EXPECT_EQ(bench["rows"][0]["time_us"], good["predicted"]);
  const Outcome words = shell("$R accuracy " + file.path());
  EXPECT_NE(words.text.find("GPU 'abacus' is not in the table of machines (1): b at 8 B"),
            std::string::npos)
      << words.text;
}

TEST(Accuracy, GivesTheSameBytesWhateverTheThreads) {
  const std::string command = std::string("$R accuracy ") + published;
  const Outcome one = shell(command + " --threads 1 --json -"),
                three = shell(command + " --threads 3 --json -");
  ASSERT_EQ(one.exit_code, 0) << one.text.substr(0, 1000);
  EXPECT_TRUE(one.text == three.text);
  EXPECT_EQ(shell(command + " --threads 1").text, shell(command + " --threads 2").text);
}

TEST(Accuracy, TellsAllMistakesOfAllFiles) {
  const TemporaryFile first(std::string(header) + "a,b\n", ".csv"), second("x,y\n1,2\n", ".csv");
  const Outcome outcome = shell("$R accuracy " + first.path() + " " + second.path());
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.text.find(first.path() + ":2:1: error: 2 cells, but the header has 17 columns"),
            std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find(second.path() + ":1:1: error: its columns are of no known format"),
            std::string::npos)
      << outcome.text;
  expect_outcome("$R accuracy x.csv --by row", 2,
                 "error: --by row is neither 'sweep' nor 'file'\n");
  expect_outcome("$R accuracy x.csv --worst -1", 2, "error: --worst -1 must not be below 0\n");
  const Outcome twice = shell("$R accuracy " + first.path() + " " + first.path());
  EXPECT_NE(twice.text.find("is named twice"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::accuracy_test
