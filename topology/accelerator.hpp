// What a rank computes with: what its data sheet says, and how much of it libraries reach.
// sim/DECISIONS.md, "Cost of compute", has the formula behind these numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/precision.hpp"
#include "sim/base/units.hpp"

namespace rehearse {

/// Peaks are dense, without sparsity. What a file leaves out is what GPUs have in common.
struct Accelerator {
  struct Peak {
    std::string precision;  // "fp32", "tf32", "bf16", "fp16", "fp8"
    FlopsPerSecond rate;
    double efficiency = 0.8;  // the share of it that the best large GEMMs reach
    friend bool operator==(const Peak&, const Peak&) = default;
  };
  /// The part of C that one compute unit makes at a time; libraries have each both ways round.
  struct Tile {
    std::uint32_t rows = 0, columns = 0;
    friend bool operator==(const Tile&, const Tile&) = default;
  };

  /// A GEMM whose time was measured, launch and all: no formula is asked for it.
  struct MeasuredGemm {
    struct Shape {
      Precision precision{};
      std::int64_t m = 0, n = 0, k = 0, batch = 1;
      friend bool operator==(const Shape&, const Shape&) = default;
      friend auto operator<=>(const Shape&, const Shape&) = default;
    };
    Shape shape;
    Time time;
    friend bool operator==(const MeasuredGemm&, const MeasuredGemm&) = default;
  };

  std::string name;
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  std::vector<Peak> peaks;

  std::uint32_t compute_units = 1;  // SMs, CUs or cores: tiles come in waves of as many
  Time launch_overhead = 5_us;      // of every kernel: launch, first loads, last stores
  double memory_efficiency = 0.87;  // the share of the bandwidth that a long copy reaches
  Bytes memory_ramp{1'000'000};     // a kernel with this traffic reaches half of that
  double fused_efficiency = 0.5;    // the share of a peak that flash attention reaches
  double flash_1_efficiency = 0;    // the same of its older versions; 0: as above
  double winograd_share = 1;  // of the products of 3 x 3 convolutions in fp32: what is left of them
  double flash_2_efficiency = 0;
  double sustained_share = 1;         // of a peak: more of it in the mean, and clocks go down
  double elementwise_share = 1;       // of a long copy's rate: what sweeps of a step's forward pass
  double elementwise_grad_share = 1;  // over memory reach, and those of its backward pass
  double communication_share = 0.16;  // of compute, lost while a collective runs beside it
  std::vector<Tile> tiles{{256, 128}, {128, 128}, {128, 64}, {64, 64}, {64, 32}, {32, 32}};
  double k_ramp = 100;   // a GEMM with k this deep reaches half of a tile's rate
  double tile_ramp = 2;  // the same for the sides of a tile: small ones reload more operands
  std::vector<MeasuredGemm> measured;  // sorted by shape, each shape once

  friend bool operator==(const Accelerator&, const Accelerator&) = default;
};

/// Part of what an Accelerator says, to be laid over the rest: what a file gives, and what a
/// calibration measured.
struct AcceleratorChanges {
  struct Efficiency {
    std::string precision;
    double share = 1;
    friend bool operator==(const Efficiency&, const Efficiency&) = default;
  };
  std::optional<std::uint32_t> compute_units;
  std::optional<Time> launch_overhead;
  std::optional<Bytes> memory_ramp;
  std::optional<double> memory_efficiency, fused_efficiency, flash_1_efficiency, flash_2_efficiency,
      winograd_share, sustained_share, elementwise_share, elementwise_grad_share,
      communication_share;
  std::vector<Efficiency> efficiencies;
  std::optional<std::vector<Accelerator::Tile>> tiles;
  std::optional<double> k_ramp, tile_ramp;
  std::vector<Accelerator::MeasuredGemm> measured;
  friend bool operator==(const AcceleratorChanges&, const AcceleratorChanges&) = default;
};

/// Throws InputError for an efficiency of a precision that has no peak.
Accelerator changed(Accelerator accelerator, const AcceleratorChanges& changes);

}  // namespace rehearse
