// Slices by name, and the calls that every kind of layer needs.
#include "strategies/binding/site.hpp"

#include <algorithm>

#include "sim/base/assert.hpp"

namespace rehearse {

void CallList::add(Kernel kernel, std::initializer_list<Slice> operands, const Sizes& sizes,
                   const Numbers& numbers) {
  ASSERT(operands.size() == entry_of(kernel).operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i)
    accesses_.push_back({operands.begin()[i], writes_operand(kernel, i)});
  calls_.push_back({.kernel = kernel,
                    .operands = static_cast<std::uint8_t>(operands.size()),
                    .sizes = sizes,
                    .numbers = numbers});
  // These two go byte by byte.
  if (buffers_ == nullptr || kernel == Kernel::copy || kernel == Kernel::zero) return;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Precision format = buffers_->format(operands.begin()[i]);
    if (format == Precision::fp32) continue;
    calls_.back().narrow = format;
    calls_.back().narrow_operands |= static_cast<std::uint16_t>(1u << i);
  }
}

void CallList::append(const CallList& more) {
  accesses_.insert(accesses_.end(), more.accesses_.begin(), more.accesses_.end());
  calls_.insert(calls_.end(), more.calls_.begin(), more.calls_.end());
}

void CallList::cast(const Slice& x, const Slice& y, Precision narrow) {
  add(Kernel::scale, {x, y}, {}, {1});
  calls_.back().narrow = narrow;
  calls_.back().narrow_operands = x.size < y.size ? 1 : 2;
}

void bind_pieces(PieceSite& site, std::string_view name) {
  const LayerKind kind = site.layer().kind;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('+', at), name.size());
    const std::string_view piece = name.substr(at, end - at);
    if (kind == LayerKind::dense)
      bind_dense(site, piece);
    else if (kind == LayerKind::block)
      bind_block(site, piece);
    else
      bind_end(site, piece);
    at = end + 1;
  }
}

Slice PieceSite::tensor(std::string_view name, std::int64_t numbers) {
  return model_.buffers.numbers({layer_, microbatch_, again_}, name, numbers);
}

Slice PieceSite::exact(std::string_view name, std::int64_t numbers) {
  return bytes(name, 4 * numbers);
}

Slice PieceSite::bytes(std::string_view name, std::int64_t bytes) {
  return model_.buffers.tensor({layer_, microbatch_, again_}, name, Bytes{bytes});
}

Slice PieceSite::fed(std::string_view name, std::int64_t words) {
  return model_.buffers.tensor({layer_, microbatch_}, name, Bytes{4 * words});
}

BufferBook::Arena PieceSite::recomputed_arena() const {
  return {layer_, microbatch_, again_ || (backward_ && model_.recompute == Recompute::selective)};
}

Slice PieceSite::recomputed(std::string_view name, std::int64_t numbers) {
  return model_.buffers.numbers(recomputed_arena(), name, numbers);
}

Slice PieceSite::recomputed_exact(std::string_view name, std::int64_t numbers) {
  return model_.buffers.tensor(recomputed_arena(), name, Bytes{4 * numbers});
}

Slice PieceSite::stream(std::uint32_t side, std::int64_t numbers) {
  // What leaves a layer that runs again has been handed on already: the copy is
  // its own.
  if (side == 1 && again_) return tensor("stream.again", numbers);
  return model_.buffers.numbers({layer_ + side, microbatch_}, "stream", numbers);
}

Slice PieceSite::stream_gradient(std::uint32_t side, std::int64_t numbers) {
  return model_.buffers.numbers({layer_ + side, microbatch_}, "stream.gradient", numbers);
}

void PieceSite::scale_loss() {
  calls.add(Kernel::scale_loss, {bytes("loss", 8), loss_state(), bytes("loss.scaled", 8)});
}

Slice PieceSite::own(const Slice& whole) const {
  if (!how().sequence_parallel) return whole;
  return Cut{whole, static_cast<std::size_t>(how().tensor)}[place_];
}

void PieceSite::dropout(const Slice& x, const Slice& y, const Mask& mask) {
  constexpr std::int64_t masks = std::int64_t{1} << 62;  // their streams
  calls.add(Kernel::dropout, {x, loss_state(), y},
            {static_cast<std::int64_t>(model_.seed), masks + 4 * layer_ + mask.place,
             first_sample_ * mask.stride + mask.first, mask.block, mask.stride},
            {model_.dropout});
}

void PieceSite::drop_rows(const Slice& x, const Slice& y, std::int64_t place) {
  const std::int64_t sample = how().seq_length * transformer().hidden, here = count(x);
  const std::int64_t whole = how().micro_batch * sample;
  // Own rows lie one behind the other, whichever samples they are of.
  const std::int64_t first = here < whole ? static_cast<std::int64_t>(place_) * here : 0;
  dropout(x, y, {place, first, here, sample});
}

Slice PieceSite::parameter(std::string_view name) {
  return model_.buffers.state(StateKind::parameters, model_.layout.run(parameters_layer(), name));
}

Slice PieceSite::factor(std::string_view name) {
  if (!casts()) return parameter(name);
  return tensor(std::string{name} + ".copy", weights_in(name));
}

void PieceSite::cast_weight(std::string_view name) {
  ASSERT(casts());
  calls.add(Kernel::scale, {parameter(name), factor(name)}, {}, {1});
}

Slice PieceSite::narrow_gradient(std::string_view name) {
  return tensor(std::string{name} + ".narrow_gradient", weights_in(name));
}

void PieceSite::add_gradient(std::string_view name) {
  ASSERT(casts());
  const Slice part = narrow_gradient(name);
  const auto [whole, beta] = gradient_of_product(name);
  if (beta == 0)
    calls.add(Kernel::scale, {part, whole}, {}, {1});
  else
    calls.add(Kernel::add_into, {part, whole});
}

Slice PieceSite::widened(const Slice& numbers) {
  if (!casts()) return numbers;
  return exact("wide " + std::to_string(index(numbers.buffer)) + " " +
                   std::to_string(numbers.offset.count()),
               count(numbers));
}

void PieceSite::widen(const Slice& numbers) {
  ASSERT(casts());
  calls.add(Kernel::scale, {numbers, widened(numbers)}, {}, {1});
}

void PieceSite::narrow(const Slice& numbers) {
  ASSERT(casts());
  calls.add(Kernel::scale, {widened(numbers), numbers}, {}, {1});
}

Slice PieceSite::gradient_slice(std::string_view name) {
  return model_.buffers.state(StateKind::gradients, model_.layout.run(parameters_layer(), name),
                              model_.gradients_apart ? microbatch_ : 0);
}

Slice PieceSite::gradient(std::string_view name) {
  const auto [slice, beta] = gradient_of_product(name);
  if (beta == 0) calls.add(Kernel::zero, {slice});
  return slice;
}

std::pair<Slice, double> PieceSite::gradient_of_product(std::string_view name) {
  const Slice slice = gradient_slice(name);
  const bool is_first = model_.written.emplace(rank_, slice.buffer, slice.offset.count()).second;
  return {slice, is_first ? 0 : 1};
}

void PieceSite::forward(const ProductShape& shape, const Slice& x, const Slice& weight,
                        const Slice& y) {
  calls.add(Kernel::gemm, {x, weight, y}, {shape.rows, shape.outputs, shape.inputs}, {1, 0});
}

void PieceSite::input_gradient(const ProductShape& shape, const Slice& dy, const Slice& weight,
                               const Slice& dx, bool adds) {
  calls.add(Kernel::gemm, {dy, weight, dx}, {shape.rows, shape.inputs, shape.outputs, 0, 1},
            {1, adds ? 1.0 : 0.0});
}

void PieceSite::weight_gradient(const ProductShape& shape, const Slice& x, const Slice& dy,
                                std::string_view weight) {
  const auto [slice, beta] =
      casts() ? std::pair{narrow_gradient(weight), 0.0} : gradient_of_product(weight);
  calls.add(Kernel::gemm, {x, dy, slice}, {shape.inputs, shape.outputs, shape.rows, 1, 0},
            {1, beta});
}

}  // namespace rehearse
