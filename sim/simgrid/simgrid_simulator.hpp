// The same Program on SimGrid S4U: the reference engine, and an option for users
// (`--engine simgrid`).
#pragma once

#include "sim/engine/executor.hpp"
#include "topology/routing.hpp"

namespace rehearse {

class SimGridSimulator final : public Executor {
 public:
  /// The routing's topology and the cost model must outlive the simulator.
  SimGridSimulator(Routing& routing, const CostModel& cost) : routing_{routing}, cost_{cost} {}

  /// Throws CheckFailed with the cycle of waiting ops when the program cannot finish.
  Timeline run(const Program& program) override;

 private:
  Routing& routing_;
  const CostModel& cost_;
};

}  // namespace rehearse
