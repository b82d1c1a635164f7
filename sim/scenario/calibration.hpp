// What was measured on somebody's machine, to be used instead of the catalog's figures.
//
//   schema = 1
//   name   = "node17"
//   source = "cuBLAS 12.4, 220 GEMMs, clocks not locked"
//   error  = 0.06                     # mean |predicted - measured| / measured, of its own kernels
//
//   [[accelerator]]
//   name = "A100 SXM 80GB"            # as the cluster file calls it
//   launch_overhead = "4.1us"         # any key of [accelerator] that says how much is reached
//   [accelerator.efficiency]
//   bf16 = 0.86
//   [[accelerator.measured]]          # a kernel that takes exactly this long
//   precision = "bf16"
//   m = 4096
//   n = 12288
//   k = 4096
//   time = "1.7ms"
//
//   [[framework]]
//   name = "megatron-lm"              # as the scenario calls it
//   launch_time = "30us"              # of the host, each kernel
//   exchange_share = 0.2              # of gradients' best rate; left out: the framework's own
//   [[link]]                          # all links of a kind
//   kind = "network"
//   bandwidth_share = 0.93            # of what the cluster file says
//   latency = "21us"                  # of one link; left out: as the cluster file says
//   overhead = "40us"                 # of a message, however many links it crosses; left out: none
//   piece = "8KiB"                    # pipelines send no shorter messages; left out: any
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace rehearse {

struct Calibration {
  struct Device {
    std::string accelerator;  // its name in the cluster file
    AcceleratorChanges changes;
    friend bool operator==(const Device&, const Device&) = default;
  };
  struct LinkClass {
    LinkKind kind{};
    double bandwidth_share = 1;
    std::optional<Time> latency;
    Time overhead;
    std::optional<Bytes> piece;
    friend bool operator==(const LinkClass&, const LinkClass&) = default;
  };
  std::string name;
  std::string source;  // in words: what was measured, where, with what
  double error = 0;    // as stated: the mean share by which it misses what it was made from
  std::vector<Device> devices;
  struct Launch {
    std::string framework;      // as sim/scenario/framework.cpp calls it
    Time time;                  // of its host, each kernel
    double exchange_share = 0;  // 0: the framework's own
    friend bool operator==(const Launch&, const Launch&) = default;
  };
  std::vector<Launch> launches;
  std::vector<LinkClass> links;
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// Throws InputError with every mistake of the text, each with its place in `file`.
Calibration parse_calibration(std::string_view text, const std::string& file);
Calibration load_calibration(const std::string& file);

/// parse_calibration(to_toml(c), …) == c.
std::string to_toml(const Calibration& calibration);

/// The topology with what was measured laid over its accelerators and links. Throws InputError when
/// none of them is in the calibration: a figure must not be called calibrated when it is not.
Topology apply(const Calibration& calibration, Topology topology);

/// The same, but what it does not know stays as it is; and the launches of a scenario's framework.
Topology apply_known(const Calibration& calibration, Topology topology);
Scenario apply(const Calibration& calibration, Scenario scenario);

/// For reports: "node17 (cuBLAS 12.4, …; stated error 6 %)", or what stands in its place.
std::string describe(const std::optional<Calibration>& calibration);

}  // namespace rehearse
