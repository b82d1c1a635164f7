// From what a measurement says of its hardware to a machine: a table from slugs to the catalog, and
// what is changed of it (NICs and their rate, latency by kind of fabric, how GPUs are joined).
#pragma once

#include <string>

#include "tools/accuracy/measured_rows.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// The cluster file of such a machine. Throws InputError with the reason where there is none.
std::string machine_text(const MeasuredHardware& hardware);

/// What that file describes.
Topology machine_of(const MeasuredHardware& hardware);

}  // namespace rehearse
