// How wrong predictions are, in a few numbers.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace rehearse {

double mean_of(std::span<const double> values);
/// With linear interpolation between neighbours (NumPy's default); `share` from 0 to 1.
double percentile(std::vector<double> values, double share);

/// Rank correlation (Spearman 1904): Pearson's of the ranks, ties sharing the mean of theirs. None
/// where there are fewer than two values, or one side is all the same.
std::optional<double> spearman(std::span<const double> a, std::span<const double> b);

/// Ranks from 1, ties sharing the mean of theirs.
std::vector<double> ranks_of(std::span<const double> values);

}  // namespace rehearse
