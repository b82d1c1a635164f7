// What must hold of every kernel on every catalog device: never below the roofline, finite, and
// more work never takes less time.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "tests/support/random_program.hpp"
#include "topology/formats/catalog.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::cost_model_test {
namespace {

std::vector<Accelerator> devices() {
  std::vector<Accelerator> all;
  for (const CatalogEntry& entry : catalog())
    all.push_back(load_cluster(std::string{entry.name}).accelerators.front());
  return all;
}

std::int64_t random_side(Draw& draw) {
  const std::int64_t side =
      draw.of<std::int64_t>({1, 8, 64, 128, 1024, 4096, 12288, 50257, 1 << 20});
  return std::max<std::int64_t>(1, side + static_cast<std::int64_t>(draw.below(5)) - 2);
}

Compute random_gemm(Draw& draw) {
  const Gemm shape{random_side(draw), random_side(draw), random_side(draw),
                   draw.of<std::int64_t>({1, 1, 2, 96, 1000})};
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
             k = static_cast<double>(shape.k), batch = static_cast<double>(shape.batch);
  const auto math = static_cast<Precision>(draw.below(5));
  const double bytes =
      batch * (m * k + k * n + m * n) * static_cast<double>(bytes_of(math).count());
  return {.flops = Flops{2 * m * n * k * batch},
          .traffic = Bytes{static_cast<std::int64_t>(bytes)},
          .gemm = shape,
          .math = math};
}

TEST(CostModel, IsNeverBelowTheRooflineAndAlwaysFinite) {
  const ShapedRoofline shaped;
  const Roofline roofline;
  const std::vector<Accelerator> all = devices();
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    Draw draw{seed};
    const Accelerator& device = draw.of(all);
    Compute work = random_gemm(draw);
    if (draw.once_in(4)) work.gemm = {};
    if (draw.once_in(4)) work.traffic = {};
    const double seconds = shaped.compute(work, device).count();
    ASSERT_TRUE(std::isfinite(seconds)) << "seed " << seed;
    ASSERT_GE(seconds, roofline.compute(work, device).count()) << "seed " << seed;
    ASSERT_GE(seconds, device.launch_overhead.seconds().count()) << "seed " << seed;
  }
}

// Of one kernel, not of a schedule: a larger product contains the smaller one.
TEST(CostModel, ALargerProductNeverTakesLess) {
  const ShapedRoofline shaped;
  const std::vector<Accelerator> all = devices();
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    Draw draw{seed};
    const Accelerator& device = draw.of(all);
    Compute small = random_gemm(draw);
    small.traffic = {};
    Compute large = small;
    const std::size_t side = draw.below(3);
    std::int64_t& grown = side == 0 ? large.gemm.m : side == 1 ? large.gemm.n : large.gemm.batch;
    grown += static_cast<std::int64_t>(draw.between(1, 300));
    ASSERT_GE(shaped.compute(large, device).count(), shaped.compute(small, device).count())
        << "seed " << seed << " on " << device.name;
  }
}

TEST(CostModel, OneDeepProductIsLimitedByItsParts) {
  const ShapedRoofline shaped;
  for (const Accelerator& device : devices()) {
    const Compute half{.gemm = {4096, 4096, 4096, 1}, .math = Precision::fp32};
    const Compute whole{.gemm = {4096, 4096, 8192, 1}, .math = Precision::fp32};
    const double launch = device.launch_overhead.seconds().count();
    const double one = shaped.compute(half, device).count() - launch;
    const double both = shaped.compute(whole, device).count() - launch;
    EXPECT_LE(both, 2 * one * (1 + 1e-12)) << device.name;
    EXPECT_GE(both, one) << device.name;
  }
}

}  // namespace
}  // namespace rehearse::cost_model_test
