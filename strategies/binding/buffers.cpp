// Numbers are dealt out as they are first asked for: the same step, the same
// numbers.
#include "strategies/binding/buffers.hpp"

#include "sim/base/assert.hpp"
#include "strategies/layers/optimizer.hpp"

namespace rehearse {

StoredNumbers stored_numbers(const Training& training) {
  const StateFormat format = state_format(training);
  const auto in = [&](Bytes each) {
    return each == Bytes{4} ? Precision::fp32 : training.precision;
  };
  return {training.precision, in(format.parameter), in(format.gradient)};
}

Slice BufferBook::state(StateKind kind, const Run& run, std::uint32_t microbatch) {
  const auto [slot, is_new] = state_.try_emplace({kind, run.group, microbatch});
  if (is_new) slot->second = next(format_of(kind));
  return slice_of(kind, slot->second, run);
}

std::vector<Slice> BufferBook::kept_states(const Run& run) const {
  std::vector<Slice> slices;
  for (const auto& [key, buffer] : state_) {
    const auto& [kind, group, microbatch] = key;
    if (group == run.group && kind != StateKind::gradients && kind != StateKind::update)
      slices.push_back(slice_of(kind, buffer, run));
  }
  return slices;
}

Slice BufferBook::tensor(const Arena& arena, std::string_view name, Bytes size) {
  const auto [slot, is_new] = arenas_.try_emplace(arena);
  if (is_new) slot->second.buffer = next(arena.is_narrow ? stored_.layers : Precision::fp32);
  Tensors& tensors = slot->second;
  if (const auto found = tensors.slices.find(name); found != tensors.slices.end()) {
    ASSERT(found->second.size == size);
    return found->second;
  }
  const Slice slice{tensors.buffer, tensors.used, size};
  constexpr std::int64_t line = 64;  // of a cache
  tensors.used += Bytes{(size.count() + line - 1) / line * line};
  tensors.slices.emplace(name, slice);
  return slice;
}

Slice BufferBook::numbers(Arena arena, std::string_view name, std::int64_t count) {
  arena.is_narrow = stored_.layers != Precision::fp32;
  return tensor(arena, name, Bytes{bytes_of(stored_.layers).count() * count});
}

Slice BufferBook::of_rank(std::string_view name, Bytes size) {
  const auto found = own_.find(name);
  if (found != own_.end()) return found->second;
  return own_.emplace(name, Slice{next(), Bytes{0}, size}).first->second;
}

}  // namespace rehearse
