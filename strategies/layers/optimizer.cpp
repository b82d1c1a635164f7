// Every kernel here is bound by memory: what it reads and writes for each parameter is its cost.
#include "strategies/layers/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "sim/scenario/framework.hpp"

namespace rehearse {

namespace {

// With autocast the weights themselves are in fp32.
bool has_master_copy(const Training& training) {
  return training.precision != Precision::fp32 && training.precision != Precision::tf32 &&
         !training.autocast;
}

std::int64_t moments(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return 0;
    case OptimizerKind::momentum:
    case OptimizerKind::lars:
      return 1;
    case OptimizerKind::adam:
    case OptimizerKind::lamb:
      return 2;
  }
  return 0;
}

Piece kernel(std::string name, std::int64_t parameters, double flops, std::int64_t bytes) {
  const Compute work{.flops = Flops{flops * static_cast<double>(parameters)},
                     .traffic = Bytes{bytes * parameters},
                     .math = Precision::fp32};
  return {std::move(name), work};
}

// Of operators one after the other, beside a fused kernel's. In fp32 those of SGD can be counted
// (torch/optim/sgd.py): the decay is added to the gradient, rrw, the moment scaled, rw, and the
// gradient added to it, rrw; the weight read and written, and the moment read for it; the gradient
// zeroed, w: 48 bytes with a moment in place of 20, 28 without one in place of 12. What AMP puts
// around them, and what Adam and LAMB do with clipping and statistics, is fitted.
std::int64_t chained_bytes(const Training& training) {
  const double fitted = frameworks()[training.framework].update_bytes;
  const bool is_wide =
      training.precision == Precision::fp32 || training.precision == Precision::tf32;
  const std::int64_t kept = moments(training.optimizer);
  if (!is_wide || kept > 1 || training.optimizer == OptimizerKind::lars)
    return std::llround(fitted);
  return std::min<std::int64_t>(std::llround(fitted), kept == 1 ? 28 : 16);
}

}  // namespace

StateFormat state_format(const Training& training) {
  const bool master = has_master_copy(training);
  const std::int64_t kept = master ? 2 : 4;  // fp8 is a format of products; weights stay 16 bits
  return {Bytes{kept}, Bytes{training.gradients_in_fp32 ? 4 : kept},
          Bytes{4 * moments(training.optimizer) + (master ? 4 : 0)}};
}

std::vector<Piece> optimizer_pieces(const Training& training, std::int64_t parameters) {
  if (parameters == 0) return {};
  const StateFormat format = state_format(training);
  const std::int64_t gradient = format.gradient.count(), state = format.state.count();
  const std::int64_t weight = format.parameter.count();
  // State is read and written; so is the weight, unless it is made anew from its master copy.
  const bool master = has_master_copy(training);
  const std::int64_t update = gradient + 2 * state + (master ? weight : 2 * weight);
  std::vector<Piece> pieces;
  switch (training.optimizer) {
    case OptimizerKind::sgd:
      pieces.push_back(kernel("optimizer.sgd", parameters, 2, update));
      break;
    case OptimizerKind::momentum:
      pieces.push_back(kernel("optimizer.momentum", parameters, 4, update));
      break;
    case OptimizerKind::adam:
      pieces.push_back(kernel("optimizer.adam", parameters, 12, update));
      break;
    case OptimizerKind::lars:  // norms of weights and gradients first
      pieces.push_back(kernel("optimizer.norms", parameters, 4, gradient + (master ? 4 : weight)));
      pieces.push_back(kernel("optimizer.lars", parameters, 6, update));
      break;
    case OptimizerKind::lamb:  // the update is written, its norm taken, and then applied
      pieces.push_back(kernel("optimizer.lamb_update", parameters, 14,
                              gradient + 2 * 8 + (master ? 4 : weight) + 4));
      pieces.push_back(kernel("optimizer.norms", parameters, 4, 4 + (master ? 4 : weight)));
      pieces.push_back(
          kernel("optimizer.lamb_apply", parameters, 3, 4 + (master ? 8 + weight : 2 * weight)));
      break;
  }
  std::get<Compute>(pieces.back().work).traffic += chained_bytes(training) * Bytes{parameters};
  return pieces;
}

}  // namespace rehearse
