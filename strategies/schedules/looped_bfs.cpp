// Looped breadth-first: each rank holds v chunks and runs all micro-batches on one chunk before the
// next, so that a layer's parameters are gathered, and its gradients reduced, once for all of them.
//
//   rank 0 │0F0│0F1│2F0│2F1│           │2B1    │2B0    │0B1    │0B0    │      p = 2, v = 2
//   rank 1     │1F0│1F1│3F0│3F1│3B1    │3B0    │1B1    │1B0    │
//
// Bubble (p-1)(F + B)/v for F and B of a whole rank, when m is at least p; all m micro-batches of
// all chunks are kept. Lamy-Poirier, Breadth-First Pipeline Parallelism, 2022. Backward
// begins with the last micro-batch, as in PyTorch's ScheduleLoopedBFS.
#include "strategies/schedules/orders.hpp"

namespace rehearse {

Schedule make_looped_bfs(const PipelineShape& shape) {
  Schedule schedule = empty_schedule(shape, StagePlacement::loop, 2);
  for (std::size_t rank = 0; rank < shape.ranks; ++rank) {
    ScheduleRow& row = schedule.ranks[rank];
    for (std::size_t c = 0; c < shape.chunks; ++c)
      for (std::size_t i = 0; i < shape.microbatches; ++i)
        add(row, c * shape.ranks + rank, ActionKind::forward, i);
    for (std::size_t c = shape.chunks; c-- > 0;)
      for (std::size_t i = shape.microbatches; i-- > 0;)
        add(row, c * shape.ranks + rank, ActionKind::backward, i);
  }
  return schedule;
}

}  // namespace rehearse
