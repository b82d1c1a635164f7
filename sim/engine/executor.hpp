// Two of the three virtual seams: CostModel says how long one op takes alone, Executor runs a
// Program. (The third is Strategy, strategies/methods/strategy.hpp.)
#pragma once

#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"

namespace rehearse {

/// How long one op would take alone on idle hardware. Contention is the engine's business.
class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual Seconds compute(const Compute& work, const Accelerator& device) const = 0;
};

/// Simulators answer in virtual time, real executors in wall time.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual Timeline run(const Program& program) = 0;
};

}  // namespace rehearse
