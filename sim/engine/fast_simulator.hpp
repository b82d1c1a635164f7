// Our own discrete-event engine: in-order streams, edges, latency, and links shared max-min fairly
// among the transfers that live on them.
#pragma once

#include "sim/engine/executor.hpp"
#include "topology/routing.hpp"

namespace rehearse {

class FastSimulator final : public Executor {
 public:
  /// The routing's topology and the cost model must outlive the simulator.
  FastSimulator(Routing& routing, const CostModel& cost) : routing_{routing}, cost_{cost} {}

  /// Throws CheckFailed with the cycle of waiting ops when the program cannot finish, and when a
  /// result would break a physical bound.
  Timeline run(const Program& program) override;

 private:
  Routing& routing_;
  const CostModel& cost_;
};

}  // namespace rehearse
