// Interleaved 1F1B: each rank holds v chunks, stages r, r+p, r+2p, …, so that a micro-batch goes
// round the ranks v times and the pipeline fills in a v-th of the time.
//
//   rank 0 │0F0│0F1│2F0│2F1│0F2│   │2B0    │0F3│2B1    │2F2│0B0    │2F3│ …      p = 2, v = 2
//   rank 1     │1F0│1F1│3F0│3B0    │3F1│3B1    │1F2│1B0    │1F3│1B1    │ …
//
// Bubble (p-1)(F + B)/v for F and B of a whole rank. Rank r runs (v-1)p + 2(p-1-r) forwards before
// its first pair, one forward and one backward. Narayanan et al., SC'21, section 2.2.2; order as in
// Megatron-LM's forward_backward_pipelining_with_interleaving and PyTorch's
// ScheduleInterleaved1F1B.
#include <algorithm>

#include "strategies/schedules/orders.hpp"

namespace rehearse {

Schedule make_interleaved(const PipelineShape& shape) {
  Schedule schedule = empty_schedule(shape, StagePlacement::loop, 2);
  const std::size_t p = shape.ranks, all = shape.chunks * shape.microbatches;
  for (std::size_t rank = 0; rank < p; ++rank) {
    ScheduleRow& row = schedule.ranks[rank];
    InterleavedWalk forward(shape, p, rank), backward(shape, p, rank);
    const std::size_t warm_up = std::min(all, (shape.chunks - 1) * p + 2 * (p - 1 - rank));
    for (std::size_t k = 0; k < warm_up; ++k) forward.add_forward(row);
    for (std::size_t k = 0; k < all; ++k) {
      if (warm_up + k < all) forward.add_forward(row);
      backward.add_backward(row, ActionKind::backward);
    }
  }
  return schedule;
}

}  // namespace rehearse
