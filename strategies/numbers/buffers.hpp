// Numbers for the buffers of a step. What a layer computes for a micro-batch
// lies in an arena of its own, so that nothing is overwritten while somebody
// may still read it; buffers have the same number and shape on every rank that
// has them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/program.hpp"
#include "strategies/numbers/layout.hpp"

namespace rehearse {

/// What is kept for each parameter, in runs of the same shape (layout.hpp).
enum class StateKind : std::uint8_t { parameters, gradients, first_moment, second_moment, update };

class BufferBook {
 public:
  BufferBook() = default;
  /// Numbers below `first` are somebody else's.
  explicit BufferBook(std::size_t first) : count_{first} {}
  /// The buffer that a state has already.
  void set(StateKind kind, std::uint32_t group, Buffer buffer) {
    state_[{kind, group, 0}] = buffer;
  }

  /// Fp32. ZeRO has the gradients of every micro-batch apart.
  Slice state(StateKind kind, const Run& run, std::uint32_t microbatch = 0);

  /// Of those that have been asked for: what outlasts a step.
  std::vector<Slice> kept_states(const Run& run) const;

  /// A named tensor of a layer and a micro-batch; `again`: as recomputed for
  /// the backward pass.
  struct Arena {
    std::uint32_t layer = 0, microbatch = 0;
    bool again = false;
    friend auto operator<=>(const Arena&, const Arena&) = default;
  };
  Slice tensor(const Arena& arena, std::string_view name, Bytes size);

  /// Small things that a rank has once: its StepState, the sum of squares.
  Slice of_rank(std::string_view name, Bytes size);

 private:
  Buffer next() { return static_cast<Buffer>(count_++); }

  struct Tensors {
    Buffer buffer{};
    Bytes used;
    std::map<std::string, Slice, std::less<>> slices;
  };

  std::size_t count_ = 0;
  std::map<std::tuple<StateKind, std::uint32_t, std::uint32_t>, Buffer> state_;
  std::map<Arena, Tensors> arenas_;
  std::map<std::string, Slice, std::less<>> own_;
};

}  // namespace rehearse
