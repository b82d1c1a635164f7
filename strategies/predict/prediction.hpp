// What a prediction tells about one training step; tools/ prints it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/framework.hpp"
#include "strategies/lowering/step_program.hpp"

namespace rehearse {

/// Where a rank's step goes: every picosecond is in exactly one of these.
struct TimeUse {
  Time compute;                               // kernels on the compute stream
  std::array<Time, dimension_count> exposed;  // nothing computes, the rank communicates
  Time bubble;                                // neither: it waits for others
  friend bool operator==(const TimeUse&, const TimeUse&) = default;
};

struct RoleReport {
  std::string name;
  std::uint32_t ranks = 1;
  Rank rank{};
  TimeUse time;
  std::array<Time, dimension_count> communication{};  // in all, hidden or not
  MemoryUse peak{};                                   // at the moment of its peak
  Bytes peak_bytes, capacity;
};

struct Prediction {
  Time step;
  std::size_t world = 1, tensor = 1, pipeline = 1, context = 1, expert = 1, data = 1;
  std::size_t microbatches = 1;
  std::int64_t parameters = 0;
  double samples = 0, tokens = 0;  // a step
  Flops model_flops;               // a step, without recomputation
  FlopsPerSecond peak;             // of one device, in the step's precision
  TimeUse mean;                    // over all ranks
  std::vector<RoleReport> roles;
  bool fits = true;
  bool is_drawn = false;  // something of it comes from the scenario's seed
  struct Simulation {
    std::string engine;
    std::uint64_t ops = 0, events = 0;
  } simulation;
  std::string calibration;  // what stands behind the compute costs, in words
  /// Of ten published steps predicted like this one, eight took between these times its own.
  StepBand band;

  Time low() const { return Time::round(Seconds{band.low * step.seconds().count()}); }
  Time high() const { return Time::round(Seconds{band.high * step.seconds().count()}); }
  double samples_per_second() const { return samples / step.seconds().count(); }
  double tokens_per_second() const { return tokens / step.seconds().count(); }
  FlopsPerSecond model_flops_per_gpu() const {
    return model_flops / Seconds{step.seconds().count() * static_cast<double>(world)};
  }
  double mfu() const { return model_flops_per_gpu().count() / peak.count(); }
  double bubble_fraction() const { return mean.bubble.seconds().count() / step.seconds().count(); }
};

}  // namespace rehearse
