// What a rank knows of the training as a whole between steps, as it lies in its own small buffer.
// The kernels of optimizers read it; it is the same on all ranks of a synchronous training.
#pragma once

#include <cstdint>

namespace rehearse {

struct StepState {
  double taken = 0;            // steps so far, without those that were skipped
  double gradient_factor = 1;  // what the optimizer multiplies gradients by
  double finite = 1;           // 0: this step's gradients overflowed, and it is skipped
  double loss_scale = 1;
  double good_steps = 0;  // in a row, since the scale last changed
  double skipped = 0;     // steps so far
  double last_scale = 1;  // of the loss, in the step before the next one
  double unused = 0;      // whole cache lines
};
static_assert(sizeof(StepState) == 64);

}  // namespace rehearse
