// The cost of a kernel from its shape: the roofline, lowered by what tiles, waves, short loops,
// small transfers and launches take away. sim/DECISIONS.md, "Cost of compute", has the formula.
//
//        n                       a tile of C for each compute unit at a time:
//    ┌──┬──┬──┐
//  m │ 0│ 1│ 2│  wave 1: 0 1 2 3     5 tiles on 4 units take as long as 8;
//    ├──┼──┼──┤  wave 2: 4           a tile over the edge takes as long as a whole one
//    │ 3│ 4│··│
//    └──┴──┴··┘
#pragma once

#include "sim/engine/executor.hpp"

namespace rehearse {

/// By what a kernel is found among those that somebody measured: a product by its shape, any other
/// (m = 0) by its bytes (n) and operations (k).
Accelerator::MeasuredGemm::Shape measured_shape(const Compute& work);

/// Never below Roofline, but for a kernel that somebody measured: it takes what it took. Holds no
/// state: threads may share one.
class ShapedRoofline final : public CostModel {
 public:
  Seconds compute(const Compute& work, const Accelerator& device) const override;
};

}  // namespace rehearse
