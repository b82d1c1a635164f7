// Measures on real ranks what the cost model needs, in rounds: each measurement once a round, so
// that whatever else goes on between the rounds saw the same machine.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/measure/host_kernels.hpp"
#include "tools/measure/measure_host.hpp"
#include "tools/measure/profile.hpp"
#include "tools/output/progress.hpp"

namespace rehearse {

/// Links, collectives by algorithm as residuals, kernels of the scenarios (without any:
/// memory-bound ones over sizes), what communication costs them.
class HostCalibrator {
 public:
  struct What {
    const Topology& topology;  // whose ranks these are
    std::vector<LoadedScenario> scenarios;
    Bytes largest;        // message
    bool kernels = true;  // false: links and collectives only
    std::function<bool()> stop = {};
  };
  /// Makes everything ready and measures links a first time: how long pieces of a collective are
  /// must be known before it can run, and stays. InputError when mpirun started another number of
  /// processes.
  HostCalibrator(const HostRanks& ranks, What what, Progress& progress);
  HostCalibrator(const HostCalibrator&) = delete;
  HostCalibrator& operator=(const HostCalibrator&) = delete;

  void round();
  /// By all rounds so far, of which there must be one.
  Profile profile() const;

 private:
  struct LinkClass {
    Link link;
    std::size_t hops;
    LinkTrials trials;
    Bytes piece{};
  };
  struct CollectiveTrial {
    std::string algorithm;
    Bytes size;
    const Trial& trial;
  };

  void add_links();
  void add_kernels_or_memory();
  void add_collectives();
  void tell_link(const LinkClass& measured, Profile& profile) const;
  void tell_device(Profile& profile) const;
  void tell_memory(Profile& profile, AcceleratorChanges& changes) const;
  void tell_collectives(Profile& profile) const;
  const Accelerator* device() const;  // whose kernels are measured; or none
  CollectiveShape all_reduce() const;

  const HostRanks& ranks_;
  What what_;
  Progress& progress_;
  Trials trials_;
  std::vector<LinkClass> links_;
  Bytes message_;  // beside products
  std::deque<StepKernels> steps_;
  std::vector<ScaleTrial> scales_;
  std::optional<SlowingTrials> slowing_;
  std::vector<CollectiveTrial> collectives_;
};

}  // namespace rehearse
