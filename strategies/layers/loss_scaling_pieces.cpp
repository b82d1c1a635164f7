// One number in front of the backward pass, all gradients after it.
#include "strategies/layers/loss_scaling_pieces.hpp"

#include "strategies/layers/optimizer.hpp"

namespace rehearse {

const Piece& scale_piece() {
  static const Piece piece{
      .name = "loss.scale",
      .work = Compute{.flops = Flops{1}, .traffic = Bytes{8}, .math = Precision::fp32}};
  return piece;
}

Piece unscale_piece(const Training& training, std::int64_t parameters) {
  const std::int64_t gradient = state_format(training).gradient.count();
  return {.name = "loss.unscale_check",
          .work = Compute{.flops = Flops{2 * static_cast<double>(parameters)},
                          .traffic = Bytes{2 * gradient * parameters},
                          .math = Precision::fp32}};
}

}  // namespace rehearse
