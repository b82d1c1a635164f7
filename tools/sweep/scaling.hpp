// How a step scales with the number of ranks: speedup, efficiency and the serial fraction that
// explains them best.
//
//   strong (the same batch):        T(n) / T(n₀) = s + (1 - s) n₀ / n              Amdahl 1967
//   weak (a batch that grows with n): rate(n) / rate(n₀) = N - s (N - 1), N = n / n₀   Gustafson
//   1988
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/sweep/sweep_run.hpp"

namespace rehearse {

enum class ScalingKind : std::uint8_t { strong, weak, mixed };

struct ScalingCurve {
  struct Sample {
    std::size_t ranks = 0;
    Time step;
    double samples = 0;  // a step
    double speedup = 1, efficiency = 1;
    bool fits = true;
  };
  std::string title;  // what is the same along it: "scaling=weak"
  ScalingKind kind{};
  std::vector<Sample> samples;  // by ranks
  double serial_fraction = 0;   // by least squares; of a mixed curve there is none
};

/// One for each combination of the other axes that has at least two predicted points.
std::vector<ScalingCurve> scaling_curves(const std::vector<Axis>& axes,
                                         const std::vector<SweepPoint>& points);

/// With a bar for the efficiency of each point.
std::string draw(const ScalingCurve& curve);
std::string_view to_string(ScalingKind kind);

}  // namespace rehearse
