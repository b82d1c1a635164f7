// Predicts every point of a sweep, on several threads, with the same result whatever their number.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/scenario/scenario_file.hpp"
#include "strategies/predict/prediction.hpp"
#include "tools/sweep/sweep_axes.hpp"

namespace rehearse {

/// The figures of one point; what does not come out even has a reason instead.
struct SweepPoint {
  enum class Status : std::uint8_t { not_run, uneven, predicted };
  Status status{};
  std::string reason;
  Time step;
  std::size_t world = 0, tensor = 0, pipeline = 0, context = 0, expert = 0, data = 0,
              microbatches = 0;
  double samples = 0, samples_per_second = 0, tokens_per_second = 0, tflops_per_gpu = 0, mfu = 0,
         bubble_fraction = 0;
  TimeUse mean;
  Bytes peak, capacity;
  bool fits = false;
  friend bool operator==(const SweepPoint&, const SweepPoint&) = default;
};

struct SweepProgress {
  std::size_t done = 0, all = 0;
  double best = 0;  // samples a second, of what fits
};

struct SweepJob {
  const LoadedScenario& loaded;
  const std::vector<Axis>& axes;
  std::size_t threads = 1;
  std::size_t share = 0, shares = 1;                   // of the points, when others do the rest
  std::function<bool()> stop;                          // asked often; true: leave the rest
  std::function<void(const SweepProgress&)> progress;  // called now and then by one thread
};

/// By point; those of other shares are `not_run`. Throws InputError for a value that its key cannot
/// have.
std::vector<SweepPoint> run_sweep(const SweepJob& job);

/// The scenario of a point.
Scenario scenario_at(const Scenario& base, const std::vector<Axis>& axes, std::size_t point);

}  // namespace rehearse
