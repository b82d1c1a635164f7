// Tile and wave quantisation as NVIDIA describes it ("Matrix Multiplication Background User's
// Guide", sections 2 to 4). Only + - * / and sqrt, which IEEE 754
// rounds alike everywhere: the same bits on every machine.
#include "sim/engine/shaped_roofline.hpp"

#include <algorithm>
#include <cmath>

#include "sim/engine/cost_model.hpp"

namespace rehearse {

namespace {

// Below this depth a part of k is not worth a compute unit of its own (split-K).
constexpr std::int64_t shortest_part = 128;
constexpr double bytes_of_partial_sum = 4;  // fp32, whatever the inputs are

double ceil_divide(std::int64_t a, std::int64_t b) { return static_cast<double>((a + b - 1) / b); }

double ceil_divide(double a, double b) {
  constexpr double exact = 4503599627370496;  // 2^52: above it there are no halves to round up
  const double quotient = a / b;
  if (quotient >= exact) return quotient;
  const auto whole = static_cast<double>(static_cast<std::int64_t>(quotient));
  return whole * b < a ? whole + 1 : whole;
}

// What a tile of C costs for each step of k, in multiply-adds: small tiles reload more operands.
double work_of(const Accelerator::Tile& tile, double tile_ramp) {
  const double rows = tile.rows, columns = tile.columns;
  return rows * columns + tile_ramp * (rows + columns);
}

struct Device {
  const Accelerator& accelerator;
  double unit_rate;    // multiply-adds per second of one unit, on the best tile
  double memory_rate;  // bytes per second; zero: not known
};

double tiled_seconds(const Gemm& gemm, std::int64_t rows, std::int64_t columns, double work,
                     const Device& device) {
  const double units = device.accelerator.compute_units, ramp = device.accelerator.k_ramp;
  const double tiles =
      ceil_divide(gemm.m, rows) * ceil_divide(gemm.n, columns) * static_cast<double>(gemm.batch);
  const auto depth = static_cast<double>(gemm.k);
  const double step = work / device.unit_rate;
  const double whole = ceil_divide(tiles, units) * (depth + ramp) * step;
  // Split-K: where half of the units would idle, each tile is several units' work, added up after.
  if (2 * tiles > units || gemm.k < 2 * shortest_part || device.memory_rate == 0) return whole;
  const double sum = 2 * bytes_of_partial_sum * static_cast<double>(gemm.m) *
                     static_cast<double>(gemm.n) * static_cast<double>(gemm.batch) /
                     device.memory_rate;
  const auto split = [&](double parts) { return (depth / parts + ramp) * step + parts * sum; };
  // Convex in the number of parts: the best whole number is beside the best real one.
  const double most = std::min(units / tiles, depth / shortest_part);
  const double parts = std::min(most, std::sqrt(depth * step / sum));
  const auto fewer = static_cast<double>(static_cast<std::int64_t>(parts));
  if (fewer < 1) return whole;
  const double best = std::min(whole, split(fewer));
  return fewer + 1 <= most ? std::min(best, split(fewer + 1)) : best;
}

double gemm_seconds(const Gemm& gemm, const Accelerator::Peak& peak, const Accelerator& accelerator,
                    double memory_rate) {
  ASSERT(gemm.n > 0 && gemm.k > 0 && gemm.batch > 0 && !accelerator.tiles.empty());
  // The efficiency is that of the best tile, so the others are measured against it.
  double best_tile = work_of(accelerator.tiles.front(), accelerator.tile_ramp);
  double best_area = accelerator.tiles.front().rows * 1.0 * accelerator.tiles.front().columns;
  for (const Accelerator::Tile& tile : accelerator.tiles) {
    const double area = tile.rows * 1.0 * tile.columns;
    const double work = work_of(tile, accelerator.tile_ramp);
    if (work * best_area < best_tile * area) best_tile = work, best_area = area;
  }
  const double rate = peak.rate.count() * peak.efficiency / (2.0 * accelerator.compute_units);
  const Device device{accelerator, rate * best_tile / best_area, memory_rate};
  double best = -1;
  for (const Accelerator::Tile& tile : accelerator.tiles) {
    const double work = work_of(tile, accelerator.tile_ramp);
    const auto attempt = [&](std::int64_t rows, std::int64_t columns) {
      const double seconds = tiled_seconds(gemm, rows, columns, work, device);
      if (best < 0 || seconds < best) best = seconds;
    };
    attempt(tile.rows, tile.columns);
    if (tile.rows != tile.columns) attempt(tile.columns, tile.rows);
  }
  return best;
}

// Null when nobody measured it.
const Accelerator::MeasuredGemm* find_measured(const Compute& work, const Accelerator& device) {
  if (device.measured.empty()) return nullptr;
  const Accelerator::MeasuredGemm::Shape shape = measured_shape(work);
  const auto at = std::lower_bound(
      device.measured.begin(), device.measured.end(), shape,
      [](const Accelerator::MeasuredGemm& a, const auto& b) { return a.shape < b; });
  return at != device.measured.end() && at->shape == shape ? &*at : nullptr;
}

}  // namespace

Accelerator::MeasuredGemm::Shape measured_shape(const Compute& work) {
  const Precision precision = work.math.value_or(Precision::fp32);
  const Gemm& gemm = work.gemm;
  if (gemm.m > 0) return {precision, gemm.m, gemm.n, gemm.k, gemm.batch};
  return {.precision = precision,
          .n = work.traffic.count(),
          .k = static_cast<std::int64_t>(std::min(work.flops.count(), 4e18))};
}

Seconds ShapedRoofline::compute(const Compute& work, const Accelerator& device) const {
  const bool is_gemm = work.gemm.m > 0;
  if (const auto* measured = find_measured(work, device)) return measured->time.seconds();
  const Seconds bound = Roofline{}.compute(work, device);
  if (bound.count() == 0 && !is_gemm) return bound;  // nothing to launch: a pause
  const double memory_rate = device.memory_bandwidth.count() * device.memory_efficiency;
  double seconds = 0;
  if (is_gemm) {
    seconds = gemm_seconds(work.gemm, peak_for(work.math, device), device, memory_rate);
  } else if (work.flops.count() > 0) {
    const Accelerator::Peak& peak = peak_for(work.math, device);
    seconds = work.flops.count() / (peak.rate.count() * device.fused_efficiency);
  }
  if (work.traffic.count() > 0) {
    const auto bytes = static_cast<double>((work.traffic + device.memory_ramp).count());
    seconds = std::max(seconds, bytes / memory_rate);
  }
  seconds += device.launch_overhead.seconds().count();
  return std::max(bound, Seconds{seconds});
}

}  // namespace rehearse
