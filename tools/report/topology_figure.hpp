// The machine with its links coloured by how busy they are.
#pragma once

#include <span>

#include "sim/base/units.hpp"
#include "tools/report/figure.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// `link_bytes` by LinkId, carried in the time `whole`; empty: nobody knows, and nothing is
/// coloured. Of many nodes the busiest is shown whole and the others as one; of many alike devices
/// in a row the first ones.
Figure topology_figure(const Topology& topology, std::span<const Bytes> link_bytes, Time whole,
                       const FigureSize& size = {});

}  // namespace rehearse
