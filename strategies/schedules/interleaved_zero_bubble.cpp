// ZB-H1 over v chunks a rank: W, the backward of the weights, is put off by r micro-batches on rank
// r and fills the bubble of interleaved 1F1B.
//
//   rank 0 │0F0│0F1│2F0│2F1│   │2I0│2W0│0F2│2I1│2W1│0F3│0I0│0W0│2F2│ …      p = 2, v = 2
//   rank 1     │1F0│1F1│3F0│3I0│3F1│3I1│3W0│1F2│1I0│3W1│1F3│1I1│1W0│ …
//
// Rank r runs (v-1)g + p-1-r forwards before its first pair, on groups of g micro-batches: g = p,
// or where p does not divide m, m over the number of rounds, max(1, m/p). Bubble (p-1)(F + I - W)/v
// for times of a whole rank, when m is at least p. Order as in PyTorch's
// ScheduleInterleavedZeroBubble, "ZB1P"; Qi et al., Zero Bubble Pipeline Parallelism, 2023.
#include <algorithm>

#include "strategies/schedules/orders.hpp"

namespace rehearse {

Schedule make_interleaved_zero_bubble(const PipelineShape& shape) {
  Schedule schedule = empty_schedule(shape, StagePlacement::loop, 3);
  const std::size_t p = shape.ranks, all = shape.chunks * shape.microbatches;
  const std::size_t group = shape.microbatches / std::max<std::size_t>(1, shape.microbatches / p);
  for (std::size_t rank = 0; rank < p; ++rank) {
    ScheduleRow& row = schedule.ranks[rank];
    InterleavedWalk forward(shape, group, rank), input(forward), weight(forward);
    const std::size_t warm_up = std::min(all, (shape.chunks - 1) * group + p - 1 - rank);
    for (std::size_t k = 0; k < warm_up; ++k) forward.add_forward(row);
    for (std::size_t k = 0; k < all; ++k) {
      if (warm_up + k < all) forward.add_forward(row);
      input.add_backward(row, ActionKind::backward_input);
      if (k >= rank) weight.add_backward(row, ActionKind::backward_weight);
    }
    for (std::size_t k = 0; k < std::min(rank, all); ++k)
      weight.add_backward(row, ActionKind::backward_weight);
  }
  return schedule;
}

}  // namespace rehearse
