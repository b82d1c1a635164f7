// A calibration profile from measurements on the ranks of this machine.
#pragma once

#include <string>
#include <vector>

#include "tools/measure/profile.hpp"
#include "topology/topology.hpp"

namespace rehearse {

struct HostCalibration {
  const Topology& topology;
  std::vector<std::string> scenarios;  // whose kernels are measured
  Bytes largest;                       // message
  std::size_t rounds = 5;              // how often each is measured
  bool quiet = false;
};
/// Rounds of a HostCalibrator. Ranks are those of the topology.
Profile calibrate_on_host(const HostCalibration& what);

}  // namespace rehearse
