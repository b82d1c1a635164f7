// ZB-H1: 1F1B with the backward pass cut in two. I, the gradient of the input, is what the rank
// before waits for; W, the gradient of the weights, can wait and fills the bubble.
//
//   rank 0 │0F0│0F1│0F2│       │0I0│0W0│0F3│0I1│0W1│0I2│0W2│0I3│0W3│         p = 3, m = 4
//   rank 1     │1F0│1F1│   │1I0│1F2│1I1│1W0│1F3│1I2│1W1│1I3│1W2│1W3│
//   rank 2         │2F0│2I0│2F1│2I1│2F2│2I2│2W0│2F3│2I3│2W1│2W2│2W3│
//
// Rank r puts off its W by r micro-batches: every rank then has p of them in flight, as many as the
// first rank of 1F1B. Bubble (p-1)(F + I - W). Qi et al., Zero Bubble Pipeline Parallelism, 2023,
// section 2.1 and table 2 (they write B for I). It is also what PyTorch's
// ScheduleInterleavedZeroBubble makes of one chunk a rank.
#include <algorithm>

#include "strategies/schedules/orders.hpp"

namespace rehearse {

Schedule make_zb_h1(const PipelineShape& shape) {
  Schedule schedule = empty_schedule(shape, StagePlacement::loop, 3);
  const std::size_t m = shape.microbatches;
  for (std::size_t rank = 0; rank < shape.ranks; ++rank) {
    ScheduleRow& row = schedule.ranks[rank];
    const std::size_t warm_up = std::min(m, shape.ranks - 1 - rank);
    for (std::size_t i = 0; i < warm_up; ++i) add(row, rank, ActionKind::forward, i);
    for (std::size_t i = 0; i < m; ++i) {
      if (warm_up + i < m) add(row, rank, ActionKind::forward, warm_up + i);
      add(row, rank, ActionKind::backward_input, i);
      if (i >= rank) add(row, rank, ActionKind::backward_weight, i - rank);
    }
    for (std::size_t i = m - std::min(m, rank); i < m; ++i)
      add(row, rank, ActionKind::backward_weight, i);
  }
  return schedule;
}

}  // namespace rehearse
