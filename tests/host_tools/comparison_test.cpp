// What a comparison says of two hand-made timelines: times, hidden communication, and how much of
// an error arose beside something else.
#include "tools/run/comparison.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rehearse::comparison_test {
namespace {

//  predicted   compute  [0 ........ 10]              measured   [0 ............. 14]
//              messages         [6 .... 12]                             [6 ............. 20]
std::vector<TraceSlice> predicted() {
  return {{0, "gemm", "forward", false, 0_us, 10_us}, {0, "all_reduce", "", true, 6_us, 12_us}};
}
std::vector<TraceSlice> measured() {
  return {{0, "gemm", "forward", false, 0_us, 14_us}, {0, "all_reduce", "", true, 6_us, 20_us}};
}

TEST(Comparison, TellsWhereAnErrorComesFrom) {
  const Comparison told = compare(predicted(), measured());
  EXPECT_EQ(told.step.predicted, 12_us);
  EXPECT_EQ(told.step.measured, 20_us);
  EXPECT_DOUBLE_EQ(told.predicted_overlap, 4.0 / 6);
  EXPECT_DOUBLE_EQ(told.measured_overlap, 8.0 / 14);
  ASSERT_EQ(told.largest.size(), 2u);
  const ComparedRow& messages = told.largest[0];
  EXPECT_EQ(messages.what, "all_reduce on rank 0");
  EXPECT_EQ(messages.difference(), Time{} - 8_us);
  EXPECT_EQ(messages.difference_beside(), Time{} - 4_us);
  EXPECT_EQ(messages.difference_alone(), Time{} - 4_us);
  // The product took as long by itself as it should; all of its error is beside the messages.
  const ComparedRow& product = told.largest[1];
  EXPECT_EQ(product.difference_alone(), 0_us);
  EXPECT_EQ(product.difference_beside(), Time{} - 4_us);
  const std::string text = comparison_text(told);
  EXPECT_NE(text.find("by itself +0.000 ms, beside communication -0.004 ms"), std::string::npos)
      << text;
  EXPECT_NE(text.find("by itself -0.004 ms, beside compute -0.004 ms"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(comparison_json(told))["largest_errors"];
  EXPECT_DOUBLE_EQ(json[1]["beside_communication_ms"], -0.004);
  EXPECT_DOUBLE_EQ(json[0]["by_itself_ms"], -0.004);
}

TEST(Comparison, CountsWhatIsBesideOnce) {
  // Two kernels at once, and a pause between them and the next.
  const std::vector<TraceSlice> busy{{0, "a", "", false, 0_us, 4_us},
                                     {0, "b", "", false, 2_us, 5_us},
                                     {0, "c", "", false, 8_us, 9_us},
                                     {1, "a", "", false, 0_us, 10_us},
                                     {0, "all_reduce", "", true, 1_us, 10_us}};
  EXPECT_DOUBLE_EQ(compare(busy, busy).measured_overlap, 5.0 / 9);
}

}  // namespace
}  // namespace rehearse::comparison_test
