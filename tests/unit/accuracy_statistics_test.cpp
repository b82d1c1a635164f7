// Percentiles and rank correlations against values worked out by hand.
#include "tools/accuracy/accuracy_statistics.hpp"

#include <gtest/gtest.h>

namespace rehearse::accuracy_statistics_test {
namespace {

using Values = std::vector<double>;

TEST(AccuracyStatistics, MeanIsTheSumOverTheNumber) {
  EXPECT_DOUBLE_EQ(mean_of(Values{1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(mean_of(Values{0.25}), 0.25);
}

TEST(AccuracyStatistics, PercentilesInterpolateBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(percentile({5}, 0.9), 5);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile({3, 1, 2}, 0.5), 2);
  // Place 0.9 × 10 = 9 of eleven, counted from 0.
  EXPECT_DOUBLE_EQ(percentile({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9), 9);
  // Place 0.9 × 4 = 3.6: 0.6 of the way from 40 to 50.
  EXPECT_DOUBLE_EQ(percentile({10, 20, 30, 40, 50}, 0.9), 46);
  EXPECT_DOUBLE_EQ(percentile({2, 1}, 0), 1);
  EXPECT_DOUBLE_EQ(percentile({2, 1}, 1), 2);
}

TEST(AccuracyStatistics, TiesShareTheMeanOfTheirRanks) {
  EXPECT_EQ(ranks_of(Values{10, 30, 20}), (Values{1, 3, 2}));
  EXPECT_EQ(ranks_of(Values{7, 5, 7, 7, 1}), (Values{4, 2, 4, 4, 1}));
}

TEST(AccuracyStatistics, SpearmanLooksAtRanksOnly) {
  EXPECT_DOUBLE_EQ(spearman(Values{1, 2, 3, 4}, Values{1, 10, 100, 1000}).value(), 1);
  EXPECT_DOUBLE_EQ(spearman(Values{1, 2, 3}, Values{3, 2, 1}).value(), -1);
  // Differences of ranks 0, 1, -1, 0: 1 - 6 × 2 / (4 × 15) = 0.8.
  EXPECT_DOUBLE_EQ(spearman(Values{1, 2, 3, 4}, Values{1, 3, 2, 4}).value(), 0.8);
}

TEST(AccuracyStatistics, SpearmanWithTiesIsPearsonsOfTheRanks) {
  // Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4 about 2.5: xy = 4.5, xx = 4.5, yy = 5.
  EXPECT_NEAR(spearman(Values{1, 2, 2, 3}, Values{1, 2, 3, 4}).value(), 0.94868329805, 1e-11);
  EXPECT_FALSE(spearman(Values{1, 1, 1}, Values{1, 2, 3})) << "one side says nothing";
  EXPECT_FALSE(spearman(Values{1}, Values{1}));
}

}  // namespace
}  // namespace rehearse::accuracy_statistics_test
