// Broken calibration profiles, each with the exact text its user gets.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/scenario/calibration.hpp"
#include "tests/bad_input/case.hpp"

namespace rehearse::bad_input::calibration_test {
namespace {

const std::string good = "name = \"n\"\nsource = \"s\"\nerror = 0.1\n";
const std::string device = good + "[[accelerator]]\nname = \"A100\"\n";  // five lines

Case broken(std::string name, std::string text, std::string message) {
  return {std::move(name), "p.toml", {{"p.toml", std::move(text)}}, std::move(message)};
}

std::vector<Case> calibration_cases() {
  return {
      broken("empty", " \n", "p.toml: error: is empty"),
      broken("not_toml", "name = \n",
             "p.toml:1:8: error: Error while parsing key-value pair: expected value, saw '\\n'"),
      broken("nothing_it_needs", "schema = 1\n",
             "p.toml:1:1: error: a calibration needs the key 'name'\n"
             "p.toml:1:1: error: a calibration needs the key 'source'\n"
             "p.toml:1:1: error: a calibration needs the key 'error'\n"
             "p.toml:1:1: error: a calibration needs the key 'accelerator'"),
      broken("another_schema", "schema = 2\n" + good + "accelerator = []\n",
             "p.toml:1:10: error: 'schema' must be at most 1, not 2"),
      broken("error_in_percent", "name = \"n\"\nsource = \"s\"\nerror = 12\naccelerator = []\n",
             "p.toml:3:9: error: 'error' must be from 0 to 10, as a share of the time, not 12"),
      broken("no_source", "name = \"n\"\nsource = \"\"\nerror = 0\naccelerator = []\n",
             "p.toml:2:10: error: 'source' must say something"),
      broken("unknown_key", device + "launch_overhed = \"2us\"\n",
             "p.toml:6:1: error: unknown key 'launch_overhed'; did you mean 'launch_overhead'?"),
      broken("missing_unit", device + "launch_overhead = 2\n",
             "p.toml:6:19: error: launch_overhead: missing unit: 2; write e.g. \"2us\""),
      broken("efficiency_above_one", device + "[accelerator.efficiency]\nbf16 = 1.2\n",
             "p.toml:7:8: error: 'bf16' must be from 0.001 to 1, not 1.2"),
      broken("all_compute_lost", device + "communication_share = 1\n",
             "p.toml:6:23: error: 'communication_share' must be from 0 to 0.9, not 1"),
      broken("no_tile", device + "[accelerator.gemm]\ntiles = [\"128by64\"]\n",
             "p.toml:7:9: error: a tile is two sides up to 4096, such as \"128x64\""),
      broken("no_tiles", device + "[accelerator.gemm]\ntiles = []\n",
             "p.toml:7:9: error: 'tiles' must be a list of 1 to 16 sizes such as \"128x64\""),
      broken("nothing_said", device, "p.toml:4:1: error: nothing is said about 'A100'"),
      broken("listed_twice",
             device + "compute_units = 1\n[[accelerator]]\nname = \"A100\"\ncompute_units = 2\n",
             "p.toml:7:1: error: accelerator 'A100' is listed twice"),
      broken("measured_badly",
             device + "[[accelerator.measured]]\nprecision = \"bf17\"\nm = 0\nn = 2\n"
                      "time = \"2\"\n",
             "p.toml:6:1: error: [[accelerator.measured]] needs the key 'k'\n"
             "p.toml:7:13: error: unknown precision 'bf17'; did you mean 'bf16'?\n"
             "p.toml:8:5: error: 'm' must be at least 1, not 0\n"
             "p.toml:10:8: error: time: missing unit: \"2\"; write e.g. \"2us\""),
      broken(
          "measured_in_no_time",
          device + "measured = [{ precision = \"bf16\", m = 1, n = 1, k = 1, time = \"0us\" }]\n",
          "p.toml:6:63: error: time: must be above zero and at most an hour"),
      broken("measured_twice",
             device + "measured = [{ precision = \"bf16\", m = 1, n = 1, k = 1, time = \"1us\" },\n"
                      "{ precision = \"bf16\", m = 1, n = 1, k = 1, time = \"2us\" }]\n",
             "p.toml:7:1: error: this shape is listed twice"),
  };
}

class CalibrationFiles : public testing::TestWithParam<Case> {};

TEST_P(CalibrationFiles, GiveExactlyThisMessage) {
  try {
    parse_calibration(GetParam().files.front().second, GetParam().file);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, CalibrationFiles, testing::ValuesIn(calibration_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace rehearse::bad_input::calibration_test
