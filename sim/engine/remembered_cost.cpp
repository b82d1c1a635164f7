// Looking up what was priced before.
#include "sim/engine/remembered_cost.hpp"

#include <cstdint>

#include "sim/base/bits.hpp"

namespace rehearse {

// Shapes differ in any of these; the precision and the device are left to operator==.
std::size_t RememberedCost::Hash::operator()(const Key& key) const {
  const Compute& work = key.work;
  std::uint64_t hash = bits_of(work.flops.count());
  for (const std::int64_t part :
       {work.traffic.count(), work.gemm.m, work.gemm.n, work.gemm.k, work.gemm.batch})
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

Seconds RememberedCost::compute(const Compute& work, const Accelerator& device) const {
  if (work.flops.count() == 0 && work.traffic.count() == 0) return model_.compute(work, device);
  Key key{work, &device};
  key.work.fixed = {};  // is not the model's
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, model_.compute(work, device)).first->second;
}

}  // namespace rehearse
