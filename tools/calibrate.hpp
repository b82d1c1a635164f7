// The two ways to a calibration profile: measurements on real ranks, and logs of nccl-tests.
#pragma once

#include <string>
#include <vector>

#include "tools/host_ranks.hpp"
#include "tools/profile.hpp"
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
