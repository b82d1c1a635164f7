// A measured kernel or copy, and what our models say that it takes.
#pragma once

#include "tools/accuracy/measured_rows.hpp"
#include "topology/topology.hpp"

namespace rehearse {

struct KernelTimes {
  Seconds predicted, measured;
};

/// Throws InputError with the reason where we have no model for it. A row with a rate and no size
/// is taken as one gigabyte.
KernelTimes predict_kernel(const KernelMeasured& row, const Topology& machine);

}  // namespace rehearse
