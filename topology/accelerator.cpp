// Laying changes over an accelerator.
#include "topology/accelerator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"

namespace rehearse {

namespace {

void change(Accelerator& accelerator, const AcceleratorChanges::Efficiency& efficiency) {
  for (Accelerator::Peak& peak : accelerator.peaks)
    if (peak.precision == efficiency.precision) {
      peak.efficiency = efficiency.share;
      return;
    }
  throw InputError(fmt::format("an efficiency for '{}', but '{}' has no such peak",
                               efficiency.precision, accelerator.name));
}

// The newer of two measurements of one shape counts.
void add(std::vector<Accelerator::MeasuredGemm>& known,
         const std::vector<Accelerator::MeasuredGemm>& newer) {
  using Gemm = Accelerator::MeasuredGemm;
  std::vector<Gemm> all{newer};
  all.insert(all.end(), known.begin(), known.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Gemm& a, const Gemm& b) { return a.shape < b.shape; });
  const auto is_same = [](const Gemm& a, const Gemm& b) { return a.shape == b.shape; };
  all.erase(std::unique(all.begin(), all.end(), is_same), all.end());
  known = std::move(all);
}

}  // namespace

Accelerator changed(Accelerator accelerator, const AcceleratorChanges& changes) {
  const auto set = [](auto& to, const auto& from) {
    if (from) to = *from;
  };
  set(accelerator.compute_units, changes.compute_units);
  set(accelerator.launch_overhead, changes.launch_overhead);
  set(accelerator.memory_ramp, changes.memory_ramp);
  set(accelerator.memory_efficiency, changes.memory_efficiency);
  set(accelerator.fused_efficiency, changes.fused_efficiency);
  set(accelerator.flash_1_efficiency, changes.flash_1_efficiency);
  set(accelerator.flash_2_efficiency, changes.flash_2_efficiency);
  set(accelerator.sustained_share, changes.sustained_share);
  set(accelerator.winograd_share, changes.winograd_share);
  set(accelerator.elementwise_share, changes.elementwise_share);
  set(accelerator.elementwise_grad_share, changes.elementwise_grad_share);
  set(accelerator.communication_share, changes.communication_share);
  set(accelerator.tiles, changes.tiles);
  set(accelerator.k_ramp, changes.k_ramp);
  set(accelerator.tile_ramp, changes.tile_ramp);
  for (const auto& efficiency : changes.efficiencies) change(accelerator, efficiency);
  if (!changes.measured.empty()) add(accelerator.measured, changes.measured);
  return accelerator;
}

}  // namespace rehearse
