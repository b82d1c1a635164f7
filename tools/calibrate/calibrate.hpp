// A calibration profile from logs of nccl-tests.
#pragma once

#include <string>
#include <vector>

#include "tools/measure/profile.hpp"
#include "topology/topology.hpp"

namespace rehearse {

struct LogCalibration {
  const Topology& topology;
  std::vector<std::string> logs;
  std::string collective;
  bool quiet = false;
};
/// Share and latency of the links that limit the collective, so that its simulated curve is the
/// measured one.
Profile calibrate_from_logs(const LogCalibration& what);

}  // namespace rehearse
