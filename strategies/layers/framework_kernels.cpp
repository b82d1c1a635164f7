// Which chains stand for which piece: by name, as autocast's lists are.
#include "strategies/layers/framework_kernels.hpp"

#include <optional>
#include <string_view>

namespace rehearse {

namespace {

/// In place of one fused kernel: so many, and bytes of memory for each number that the piece
/// leaves.
struct Chain {
  std::string_view word;
  bool Framework::Fused::*fused;
  std::uint8_t kernels;
  std::uint8_t grad_kernels;
  double bytes, grad_bytes;  // more than the fused kernel, of numbers in 16 bits
  std::optional<Norm> of;    // models with these norms only
  bool of_bias = false;      // models with biases only: a sum of its own
};

// PyTorch's own modules, op by op; r and w are reads and writes in 16 bits, R and W in fp32.
constexpr Chain chains[] = {
    // float() rW, pow RW, mean R, + rsqrt, x * RW, type_as Rw, weight * rw: 36 for 4; backward
    // through the same chain.
    {".norm", &Framework::Fused::norm, 8, 12, 32, 44, Norm::rms},
    // One kernel of PyTorch's, which reads its input twice.
    {".norm", &Framework::Fused::norm, 1, 1, 2, 2, Norm::layer},
    // scale rw, masked_fill rw, softmax reads twice; backward the three again.
    {".softmax", &Framework::Fused::softmax, 3, 3, 10, 8},
    // The bias added apart; silu and product apart: rw more.
    {"gelu", &Framework::Fused::activation, 2, 2, 4, 4, {}, true},
    {"swiglu", &Framework::Fused::activation, 2, 3, 4, 6},
    // Halves negated and joined rwrw, times cos rw, times sin rw, sum rrw: 22 for 4.
    {".rope", &Framework::Fused::rope, 10, 10, 18, 18},
};

bool has(std::string_view name, std::string_view word) {
  return name.find(word) != std::string_view::npos;
}

bool is_gradient(std::string_view name) { return has(name, ".grad") || has(name, ".wgrad"); }

// A kernel each for bias and dropout, rw more; the sum of the residual is one either way.
void unfuse_residual(Piece& piece, const UnfusedModel& model) {
  if (is_gradient(piece.name) || has(piece.name, ".join")) return;
  const int apart = (model.has_bias ? 1 : 0) + (model.has_dropout ? 1 : 0);
  std::get<Compute>(piece.work).traffic += Bytes{2 * apart * piece.result.count()};
  piece.launches = static_cast<std::uint8_t>(1 + apart);
}

void unfuse(Piece& piece, const Framework& framework, const UnfusedModel& model) {
  if (piece.result == Bytes{0}) return;
  Compute& work = std::get<Compute>(piece.work);
  if (work.gemm.m > 0) return;
  if (!framework.fused.residual && has(piece.name, ".residual"))
    return unfuse_residual(piece, model);
  for (const Chain& chain : chains) {
    if (framework.fused.*chain.fused || !has(piece.name, chain.word)) continue;
    if (chain.of && *chain.of != model.norm) continue;
    if (chain.of_bias && !model.has_bias) continue;
    const bool gradient = is_gradient(piece.name);
    const double bytes = gradient ? chain.grad_bytes : chain.bytes;
    // A piece leaves numbers of 16 bits; wider ones are moved as often.
    work.traffic +=
        Bytes{static_cast<std::int64_t>(static_cast<double>(piece.result.count()) / 2 * bytes)};
    piece.launches = gradient ? chain.grad_kernels : chain.kernels;
    return;
  }
}

double flash_overhead(const Framework& framework, const Accelerator& device) {
  double reached = device.fused_efficiency;
  if (framework.flash <= 2 && device.flash_2_efficiency > 0) reached = device.flash_2_efficiency;
  if (framework.flash <= 1 && device.flash_1_efficiency > 0) reached = device.flash_1_efficiency;
  return device.fused_efficiency / reached;
}

void adopt(std::vector<Piece>& pieces, const Framework& framework, const Accelerator& device,
           const UnfusedModel& model) {
  std::vector<Piece> result;
  result.reserve(pieces.size() + 8);
  std::size_t exchange = 0, beside = 0;
  for (Piece& piece : pieces) {
    auto* work = std::get_if<Compute>(&piece.work);
    if (work == nullptr) {
      const bool is_tensor = std::get<Exchange>(piece.work).dimension == Dimension::tensor;
      if (is_tensor && !framework.overlaps_tensor_ranks) piece.beside = 0;
      exchange = result.size(), beside = piece.beside;
      result.push_back(std::move(piece));
      continue;
    }
    const bool is_beside = beside > 0;
    if (is_beside) --beside;
    unfuse(piece, framework, model);
    if (has(piece.name, "attention.flash"))
      work->flops = flash_overhead(framework, device) * work->flops;
    const bool accumulates =
        !framework.fused.accumulation && piece.of_weights && piece.weights > 0 && work->gemm.m > 0;
    result.push_back(std::move(piece));
    if (!accumulates) continue;
    // The product writes a gradient of its own, and a sum adds it to the one that is kept.
    const Piece& product = result.back();
    Piece sum{.name = product.name + ".add",
              .work = Compute{.flops = Flops{static_cast<double>(product.weights)},
                              .traffic = Bytes{6 * product.weights},
                              .math = Precision::fp32},
              .of_weights = true};
    if (is_beside) ++result[exchange].beside;
    result.push_back(std::move(sum));
  }
  pieces = std::move(result);
}

}  // namespace

LayerPieces framework_layer(LayerPieces layer, const Framework& framework,
                            const Accelerator& device, const UnfusedModel& model) {
  adopt(layer.forward, framework, device, model);
  adopt(layer.backward, framework, device, model);
  return layer;
}

}  // namespace rehearse
