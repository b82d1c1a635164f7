// The module: all of this folder with SimGrid.
#include "sim/simgrid/simgrid_module.hpp"

#include "sim/simgrid/simgrid_simulator.hpp"

rehearse::Executor* rehearse_simgrid(rehearse::Routing& routing, const rehearse::CostModel& cost) {
  return std::make_unique<rehearse::SimGridSimulator>(routing, cost).release();
}
