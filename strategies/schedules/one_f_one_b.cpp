// 1F1B: a rank begins as many micro-batches as lie between it and the end of the pipeline, and then
// one more for each that came back.
//
//   rank 0 │0F0│0F1│       │0B0    │0F2│0B1    │0F3│0B2    │   │0B3    │
//   rank 1     │1F0│1B0    │1F1│1B1    │1F2│1B2    │1F3│1B3    │
//
// T = (m + p - 1)(F + B), as GPipe, but rank r keeps activations of min(m, p - r) micro-batches
// only. Harlap et al., PipeDream, 2018; with a flush: Narayanan et al., SC'21, section 2.2.1.
#include <algorithm>

#include "strategies/schedules/orders.hpp"

namespace rehearse {

Schedule make_one_f_one_b(const PipelineShape& shape) {
  Schedule schedule = empty_schedule(shape, StagePlacement::loop, 2);
  const std::size_t m = shape.microbatches;
  for (std::size_t rank = 0; rank < shape.ranks; ++rank) {
    ScheduleRow& row = schedule.ranks[rank];
    const std::size_t warm_up = std::min(m, shape.ranks - rank);
    for (std::size_t i = 0; i < warm_up; ++i) add(row, rank, ActionKind::forward, i);
    for (std::size_t i = 0; i < m; ++i) {
      add(row, rank, ActionKind::backward, i);
      if (warm_up + i < m) add(row, rank, ActionKind::forward, warm_up + i);
    }
  }
  return schedule;
}

}  // namespace rehearse
