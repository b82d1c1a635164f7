// GPipe: all micro-batches forward, then all of them backward.
//
//   rank 0 │0F0│0F1│0F2│           │0B0    │0B1    │0B2    │    T = (m + p - 1)(F + B)
//   rank 1     │1F0│1F1│1F2│1B0    │1B1    │1B2    │            bubble (p-1)/(m+p-1) of it
//
// Every rank keeps the activations of all m micro-batches. Huang et al., GPipe, 2019, section 2.3.
// Backward goes in the order of forward, as in PyTorch's ScheduleGPipe.
#include "strategies/schedules/orders.hpp"

namespace rehearse {

Schedule make_gpipe(const PipelineShape& shape) {
  Schedule schedule = empty_schedule(shape, StagePlacement::loop, 2);
  for (std::size_t rank = 0; rank < shape.ranks; ++rank) {
    ScheduleRow& row = schedule.ranks[rank];
    for (std::size_t i = 0; i < shape.microbatches; ++i) add(row, rank, ActionKind::forward, i);
    for (std::size_t i = 0; i < shape.microbatches; ++i) add(row, rank, ActionKind::backward, i);
  }
  return schedule;
}

}  // namespace rehearse
