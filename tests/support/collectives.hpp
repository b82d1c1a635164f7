// Helpers for tests of collectives: one call from a shape to a time or a program.
#pragma once

#include <string_view>
#include <vector>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "strategies/collectives/rehearsal.hpp"
#include "topology/all_ranks.hpp"

namespace rehearse {

inline CollectiveShape shape_of(CollectiveKind kind, const Topology& topology,
                                std::size_t channels = 0) {
  CollectiveShape shape;
  shape.kind = kind;
  shape.group = all_ranks(topology);
  shape.channels = channels;
  return shape;
}

/// Time of a collective over all ranks of a machine.
inline Time time_of(std::string_view algorithm_name, CollectiveKind kind, const Topology& topology,
                    Bytes size, Detail detail = Detail::transfers, std::size_t channels = 0) {
  Routing routing(topology);
  const Roofline cost;
  FastSimulator engine(routing, cost);
  return CollectiveRehearsal(algorithm(algorithm_name), shape_of(kind, topology, channels), routing,
                             detail)
      .run(size, engine)
      .time;
}

}  // namespace rehearse
