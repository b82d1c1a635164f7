// What NCCL's protocols carry at most, beside what links allow.
#pragma once

#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

/// GB/s of user data that a group's rings and trees carry in LL at most, over all channels, by
/// NCCL's own table (tuning.cc, llMaxBws).
double nccl_most_in_ll(const CollectiveShape& shape, const Topology& topology);

}  // namespace rehearse
