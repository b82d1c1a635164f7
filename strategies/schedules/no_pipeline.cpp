// Stages without a pipeline: a micro-batch goes forward through all of them and back, then the
// next.
//
//   rank 0 │0F0│                       │0B0    │0F1│                       │0B1    │
//   rank 1     │1F0│           │1B0    │           │1F1│           │1B1    │
//   rank 2         │2F0│2B0    │                       │2F1│2B1    │
//
// T = m p (F + B) for p ranks with stage times F and B: one rank works at a time, (p-1)/p is idle.
// Inter-operator model parallelism as it was before GPipe (Huang et al. 2019, figure 2b).
#include "strategies/schedules/orders.hpp"

namespace rehearse {

Schedule make_no_pipeline(const PipelineShape& shape) {
  Schedule schedule = empty_schedule(shape, StagePlacement::loop, 2);
  for (std::size_t rank = 0; rank < shape.ranks; ++rank) {
    ScheduleRow& row = schedule.ranks[rank];
    for (std::size_t i = 0; i < shape.microbatches; ++i) {
      for (std::size_t c = 0; c < shape.chunks; ++c)
        add(row, c * shape.ranks + rank, ActionKind::forward, i);
      for (std::size_t c = shape.chunks; c-- > 0;)
        add(row, c * shape.ranks + rank, ActionKind::backward, i);
    }
  }
  return schedule;
}

}  // namespace rehearse
