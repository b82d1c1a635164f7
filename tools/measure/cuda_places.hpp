// What a step with numbers needs in the memory of its devices besides what its ops name.
#pragma once

#include <vector>

#include "kernels/cuda/cuda_memory.hpp"
#include "strategies/binding/bind.hpp"

namespace rehearse {

inline std::vector<CudaMemory::Place> places_of(const BoundStep& step) {
  std::vector<CudaMemory::Place> places;
  for (const Feed& feed : step.feeds) places.push_back({feed.rank, feed.slice});
  for (const ParameterPart& part : step.copies) places.push_back({part.rank, part.slice});
  for (const auto& [rank, slice] : step.persistent) places.push_back({rank, slice});
  for (const auto& [rank, slice] : step.states) places.push_back({rank, slice});
  for (const BoundStep::LossSlot& slot : step.losses) places.push_back({slot.rank, slot.slice});
  return places;
}

}  // namespace rehearse
