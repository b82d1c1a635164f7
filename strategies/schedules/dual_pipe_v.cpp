// DualPipeV: DeepSeek's DualPipe folded at its middle into a V, two chunks a rank. In its main part
// every forward of one chunk is paired with a backward of the other, so that the communication of
// one (an MoE's all-to-all above all) hides behind the compute of the other.
//
//   rank 0 │0F0│0F1│0F2│3F0│3I0│3W0│3F1│0F3 3B1    │3F2 0B0    │3B2    │ …       p = 2, m = 4
//   rank 1     │1F0│2F0│1F1│2F1│1F2│2B0    │2F2 1B0    │1F3 2B1    │ …
//
// Bubble (p-1)(F&B + B - 3W) for the times of a chunk and F = I, F&B being a pair's; activations of
// at most 2p + 1 chunks. Needs m of at least 2p. DeepSeek-V3 Technical Report, 2024, section 3.2.1,
// and the table in github.com/deepseek-ai/DualPipe. Order as in PyTorch's ScheduleDualPipeV, where
// a pair is one action, OVERLAP_F_B. Here it is a forward and then a backward: what overlaps is the
// engine's to find, and as the forward's output leaves at its own end, the bubble is an I shorter.
#include "strategies/schedules/orders.hpp"

namespace rehearse {

namespace {

// A rank's row, how far each chunk has come, and the weights that were put off.
class DualRank {
 public:
  DualRank(ScheduleRow& row, std::size_t down, std::size_t up) : row_{row}, stages_{down, up} {}

  void forward(int chunk) { add(row_, stages_[chunk], ActionKind::forward, forwards_[chunk]++); }
  void backward(int chunk) { add(row_, stages_[chunk], ActionKind::backward, backwards_[chunk]++); }
  void input(int chunk) {
    put_off_.push_back({stages_[chunk], backwards_[chunk]});
    add(row_, stages_[chunk], ActionKind::backward_input, backwards_[chunk]++);
  }
  void weight_put_off() {
    if (first_put_off_ == put_off_.size()) return;
    const auto& [stage, microbatch] = put_off_[first_put_off_++];
    add(row_, stage, ActionKind::backward_weight, microbatch);
  }

 private:
  struct Weight {
    std::size_t stage, microbatch;
  };
  ScheduleRow& row_;
  std::size_t stages_[2], forwards_[2] = {}, backwards_[2] = {};
  std::vector<Weight> put_off_;
  std::size_t first_put_off_ = 0;
};

constexpr int down = 0, up = 1;  // the two arms of the V

void add_rank(ScheduleRow& row, const PipelineShape& shape, std::size_t rank) {
  const std::size_t p = shape.ranks, above = p - 1 - rank;  // ranks between it and the turn
  DualRank self(row, rank, 2 * p - 1 - rank);
  for (std::size_t i = 0; i < 2 * above; ++i) self.forward(down);
  for (std::size_t i = 0; i < rank + 1; ++i) self.forward(down), self.forward(up);
  for (std::size_t i = 0; i < above; ++i) self.input(up), self.weight_put_off(), self.forward(up);
  // The main part: every forward has a backward of the other arm beside it.
  for (std::size_t i = 0; i < shape.microbatches - 2 * p + rank + 1; ++i) {
    self.forward(down), self.backward(up);
    self.forward(up), self.backward(down);
  }
  for (std::size_t i = 0; i < above; ++i) {
    self.backward(up);
    self.forward(up), self.backward(down);
  }
  // Nothing is left to send forward: in the second half of these, others wait for I, nobody for W.
  const auto back = [&](int arm, bool split) { split ? self.input(arm) : self.backward(arm); };
  for (std::size_t i = 0; i < 2 * (rank + 1); ++i) back(i % 2 == 0 ? up : down, i > rank);
  for (std::size_t i = 0; i < above; ++i) self.weight_put_off(), self.input(down);
  for (std::size_t i = 0; i < rank + 1; ++i) self.weight_put_off();
}

}  // namespace

Schedule make_dual_pipe_v(const PipelineShape& shape) {
  Schedule schedule = empty_schedule(shape, StagePlacement::v, 3);
  for (std::size_t rank = 0; rank < shape.ranks; ++rank)
    add_rank(schedule.ranks[rank], shape, rank);
  return schedule;
}

}  // namespace rehearse
