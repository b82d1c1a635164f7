// ZB-V: two chunks a rank, laid out as a V, so that the rank that begins a micro-batch also ends it
// and its first backward comes back as soon as the first chunk is done.
//
//   stages │0│1│2│3│    rank 0 │0F0│0F1│0F2│3F0│3I0│3W0│3F1│3I1│3W1│0F3│0I0│0W0│ …     p = 2
//   ranks   0 1 1 0     rank 1     │1F0│2F0│1F1│2F1│2I0│2W0│1F2│1I0│1W0│2F2│2I1│ …
//
// No bubble at all when F = I = W and m is at least 2p - 1: each rank works without a pause from
// its first action to its last. At most 2p half-rank chunks are kept, as much as 1F1B's first rank.
// Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 6. Order as in PyTorch's
// ScheduleZBVZeroBubble: that of at least 2p - 1 micro-batches, less those that are not there.
#include <algorithm>

#include "strategies/schedules/orders.hpp"

namespace rehearse {

namespace {

// One of a rank's two chunks, and how far each kind of its actions has come.
struct Chunk {
  ScheduleRow& row;
  std::size_t stage, microbatches;
  std::size_t forwards = 0, inputs = 0, weights = 0;

  void forward() { next(ActionKind::forward, forwards); }
  void input() { next(ActionKind::backward_input, inputs); }
  void weight() { next(ActionKind::backward_weight, weights); }

 private:
  void next(ActionKind kind, std::size_t& count) {
    if (count < microbatches) add(row, stage, kind, count);
    ++count;
  }
};

void add_rank(ScheduleRow& row, const PipelineShape& shape, std::size_t rank) {
  const std::size_t p = shape.ranks, m = std::max(2 * p - 1, shape.microbatches);
  Chunk down{row, rank, shape.microbatches}, up{row, 2 * p - 1 - rank, shape.microbatches};
  // Warm-up: the V is filled, then each forward that arrives goes back at once.
  for (std::size_t i = 0; i < 2 * (p - rank) - 1; ++i) down.forward();
  for (std::size_t i = 0; i < rank; ++i) up.forward(), down.forward();
  for (std::size_t i = 0; i < p - rank; ++i) up.forward(), up.input(), up.weight();
  while (up.forwards < down.forwards || down.forwards < m) {
    if (down.forwards < m) down.forward();
    down.input(), down.weight();
    up.forward(), up.input(), up.weight();
  }
  // Cool-down: others wait for I, nobody for W.
  for (std::size_t i = 0; i < rank; ++i) down.input(), up.input();
  for (std::size_t i = 0; i < p - rank; ++i) down.input(), down.weight();
  while (up.weights < m) up.weight();
  while (down.weights < m) down.weight();
}

}  // namespace

Schedule make_zbv(const PipelineShape& shape) {
  Schedule schedule = empty_schedule(shape, StagePlacement::v, 3);
  for (std::size_t rank = 0; rank < shape.ranks; ++rank)
    add_rank(schedule.ranks[rank], shape, rank);
  return schedule;
}

}  // namespace rehearse
