// The cost of kernels, by hand: one tile, one wave more, a loop too short, a kernel too small.
#include "sim/engine/cost_model.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/engine/shaped_roofline.hpp"

namespace rehearse::cost_model_test {
namespace {

// 10 units of 2 TFLOPS each; a 100x100 tile takes 10 ns for each step of k.
Accelerator round_device() {
  Accelerator device{
      .name = "round",
      .memory_bandwidth = BytesPerSecond{1e12},
      .peaks = {{"fp32", FlopsPerSecond{2e12}, 1.0}, {"bf16", FlopsPerSecond{20e12}, 1.0}}};
  device.compute_units = 10;
  device.launch_overhead = 5_us;
  device.memory_efficiency = 0.5;
  device.memory_ramp = Bytes{1'000'000};
  device.tiles = {{100, 100}};
  device.k_ramp = device.tile_ramp = 0;
  return device;
}

Compute gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  return {.flops = Flops{2.0 * static_cast<double>(m * n * k * batch)},
          .gemm = {m, n, k, batch},
          .math = Precision::bf16};
}

double microseconds(const Compute& work, const Accelerator& device) {
  return duration_of(work, device, ShapedRoofline{}).seconds().count() * 1e6;
}

TEST(ShapedRoofline, OneTileExactly) {
  // 1000 steps of 10 ns, and the launch: nine other units idle.
  EXPECT_DOUBLE_EQ(microseconds(gemm(100, 100, 100), round_device()), 5 + 1);
  EXPECT_DOUBLE_EQ(microseconds(gemm(100, 100, 200), round_device()), 5 + 2);
}

TEST(ShapedRoofline, OneRowMoreIsATileMore) {
  const Accelerator device = round_device();
  EXPECT_DOUBLE_EQ(microseconds(gemm(100, 1000, 200), device), 5 + 2);
  EXPECT_DOUBLE_EQ(microseconds(gemm(100, 1001, 200), device), 5 + 4);  // 11 tiles, 10 units
  EXPECT_DOUBLE_EQ(microseconds(gemm(1, 1, 200), device), 5 + 2);
}

TEST(ShapedRoofline, OneTileMoreThanAWaveCostsAnotherWave) {
  const Accelerator device = round_device();
  for (std::int64_t tiles = 1; tiles <= 35; ++tiles) {
    const double waves = static_cast<double>((tiles + 9) / 10);
    EXPECT_DOUBLE_EQ(microseconds(gemm(100, 100, 100, tiles), device), 5 + waves) << tiles;
  }
}

TEST(ShapedRoofline, TakesTheBestTileEitherWayRound) {
  Accelerator device = round_device();
  device.tiles = {{100, 100}, {50, 200}};
  EXPECT_DOUBLE_EQ(microseconds(gemm(50, 2000, 200), device), 5 + 2);
  EXPECT_DOUBLE_EQ(microseconds(gemm(2000, 50, 200), device), 5 + 2);
}

TEST(ShapedRoofline, ShortLoopsAndSmallTilesReachLess) {
  Accelerator device = round_device();
  device.k_ramp = 100;
  EXPECT_DOUBLE_EQ(microseconds(gemm(1000, 1000, 100), device), 5 + 2 * 10);  // half of the rate
  EXPECT_DOUBLE_EQ(microseconds(gemm(1000, 1000, 900), device), 5 + 100);
  device.k_ramp = 0;
  device.tiles = {{100, 100}, {20, 20}};
  device.tile_ramp = 10;
  // The best tile is the measure: 1 + 10 (1/100 + 1/100) = 1.2; the small one has 1 + 10/10 = 2.
  EXPECT_DOUBLE_EQ(microseconds(gemm(1000, 1000, 100), device), 5 + 10);
  device.tiles = {{20, 20}, {100, 100}};
  EXPECT_NEAR(microseconds(gemm(20, 200, 100), device), 5 + 0.04 * 2 / 1.2, 1e-6);
}

TEST(ShapedRoofline, SplitsADeepLoopOverIdleUnits) {
  // One tile, k = 12800: 128 us on one unit; ten units take 1280 each, then add up 10 partial
  // sums of 10,000 numbers: 400 kB written and read at 0.5 TB/s.
  EXPECT_DOUBLE_EQ(microseconds(gemm(100, 100, 12800), round_device()), 5 + 12.8 + 1.6);
  // No part is shorter than 128 steps: 3 of them here.
  EXPECT_DOUBLE_EQ(microseconds(gemm(100, 100, 384), round_device()), 5 + 1.28 + 0.48);
  // Slow memory makes sums dear: 12800/p x 10 ns + p x 10 us is least at 3 or 4 parts.
  Accelerator slow = round_device();
  slow.memory_efficiency = 0.008;
  EXPECT_DOUBLE_EQ(microseconds(gemm(100, 100, 12800), slow), 5 + 128.0 / 4 + 4 * 10);
}

TEST(ShapedRoofline, EfficiencyIsASharePerPrecision) {
  Accelerator device = round_device();
  device.peaks[1].efficiency = 0.5;
  EXPECT_DOUBLE_EQ(microseconds(gemm(1000, 1000, 100), device), 5 + 20);
  Compute work = gemm(1000, 1000, 100);
  work.math = Precision::fp32;
  EXPECT_DOUBLE_EQ(microseconds(work, device), 5 + 100);
}

TEST(ShapedRoofline, MemoryBoundKernels) {
  const Accelerator device = round_device();
  EXPECT_DOUBLE_EQ(microseconds({.traffic = Bytes{9'000'000}}, device), 5 + 20);
  // As much traffic as the ramp: half of the rate.
  EXPECT_DOUBLE_EQ(microseconds({.traffic = Bytes{1'000'000}}, device), 5 + 4);
  Compute work = gemm(100, 1000, 100);
  work.traffic = Bytes{9'000'000};  // slower than its math
  EXPECT_DOUBLE_EQ(microseconds(work, device), 5 + 20);
}

TEST(ShapedRoofline, MathWithoutAShapeIsFused) {
  Accelerator device = round_device();
  device.fused_efficiency = 0.5;
  EXPECT_DOUBLE_EQ(microseconds({.flops = Flops{1e9}, .math = Precision::bf16}, device), 5 + 100);
}

TEST(ShapedRoofline, APauseLaunchesNothing) {
  EXPECT_EQ(duration_of({.fixed = 3_us}, round_device(), ShapedRoofline{}), 3_us);
  EXPECT_EQ(duration_of({}, Accelerator{}, ShapedRoofline{}), Time{});
}

TEST(PeakFor, FallsBackToTheNextWiderFormat) {
  const Accelerator device{.name = "old",
                           .peaks = {{"fp32", FlopsPerSecond{1}}, {"fp16", FlopsPerSecond{8}}}};
  EXPECT_EQ(peak_for(Precision::bf16, device).precision, "fp16");
  EXPECT_EQ(peak_for(Precision::fp8, device).precision, "fp16");
  EXPECT_EQ(peak_for(Precision::tf32, device).precision, "fp32");
  EXPECT_EQ(peak_for({}, device).precision, "fp16");
  const Accelerator odd{.name = "odd", .peaks = {{"bf16", FlopsPerSecond{8}}}};
  EXPECT_EQ(peak_for(Precision::fp32, odd).precision, "bf16");
}

std::string complaint(const Compute& work, const Accelerator& device) {
  try {
    duration_of(work, device, ShapedRoofline{});
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(Roofline, SaysWhatADeviceLacks) {
  const Accelerator unknown{.name = "GPU"};
  EXPECT_EQ(complaint({.flops = Flops{1}}, unknown),
            "error: 'GPU' has no peak rate to compute with: [accelerator.peak] of its cluster file "
            "says it");
  EXPECT_EQ(complaint({.traffic = Bytes{1}}, unknown),
            "error: 'GPU' has no memory_bandwidth: [accelerator] of its cluster file says it");
  EXPECT_EQ(complaint({.flops = Flops{1e30}}, round_device()),
            "error: a kernel of 1e+30 floating-point operations and 0 bytes takes 1e+17 s on "
            "'round': longer than the clock can show");
}

}  // namespace
}  // namespace rehearse::cost_model_test
