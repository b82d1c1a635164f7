// Numbers for the buffers of a step. What a layer computes for a micro-batch
// lies in an arena of its own, so that nothing is overwritten while somebody
// may still read it; buffers have the same number and shape on every rank that
// has them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/program/program.hpp"
#include "sim/scenario/scenario.hpp"
#include "strategies/binding/layout.hpp"

namespace rehearse {

/// What is kept for each parameter, in runs of the same shape (layout.hpp).
/// Parameters of fewer than 32 bits have masters in fp32, which the optimizer updates.
enum class StateKind : std::uint8_t {
  parameters,
  gradients,
  first_moment,
  second_moment,
  update,
  masters
};

/// How numbers are stored; they are computed with in fp32 all the same. Those that are not in fp32
/// are all in one format.
struct StoredNumbers {
  Precision layers = Precision::fp32;  // what layers hand on, and its gradients
  Precision parameters = Precision::fp32, gradients = Precision::fp32;

  bool has_masters() const { return parameters != Precision::fp32; }
};
StoredNumbers stored_numbers(const Training& training);

class BufferBook {
 public:
  explicit BufferBook(const StoredNumbers& stored) : stored_{stored} {}
  /// Numbers below `first` are somebody else's; all is fp32.
  explicit BufferBook(std::size_t first) : count_{first} {}
  /// The buffer that a state has already.
  void set(StateKind kind, std::uint32_t group, Buffer buffer) {
    state_[{kind, group, 0}] = buffer;
  }

  /// ZeRO has the gradients of every micro-batch apart.
  Slice state(StateKind kind, const Run& run, std::uint32_t microbatch = 0);

  /// Of those that have been asked for: what outlasts a step.
  std::vector<Slice> kept_states(const Run& run) const;

  /// A named tensor of a layer and a micro-batch; `again`: as recomputed for
  /// the backward pass.
  struct Arena {
    std::uint32_t layer = 0, microbatch = 0;
    bool again = false;
    bool is_narrow = false;  // numbers as layers hand them on; else bytes, or numbers of fp32
    friend auto operator<=>(const Arena&, const Arena&) = default;
  };
  Slice tensor(const Arena& arena, std::string_view name, Bytes size);
  /// As layers hand them on.
  Slice numbers(Arena arena, std::string_view name, std::int64_t count);

  /// Small things that a rank has once: its StepState, the sum of squares.
  Slice of_rank(std::string_view name, Bytes size);

  const StoredNumbers& stored() const { return stored_; }
  /// The format of a slice's numbers, unless they are bytes of another kind; and how many they are.
  Precision format(const Slice& slice) const {
    return narrow_.contains(slice.buffer) ? stored_.layers : Precision::fp32;
  }
  std::int64_t count(const Slice& slice) const {
    return slice.size.count() / bytes_of(format(slice)).count();
  }

 private:
  Buffer next() { return static_cast<Buffer>(count_++); }
  Precision format_of(StateKind kind) const {
    return kind == StateKind::parameters  ? stored_.parameters
           : kind == StateKind::gradients ? stored_.gradients
                                          : Precision::fp32;
  }
  Buffer next(Precision format) {
    const Buffer buffer = next();
    if (format != Precision::fp32) narrow_.insert(buffer);
    return buffer;
  }
  Slice slice_of(StateKind kind, Buffer buffer, const Run& run) const {
    const std::int64_t each = bytes_of(format_of(kind)).count();
    return {buffer, Bytes{each * run.begin}, Bytes{each * run.size}};
  }

  struct Tensors {
    Buffer buffer{};
    Bytes used;
    std::map<std::string, Slice, std::less<>> slices;
  };

  StoredNumbers stored_;
  std::set<Buffer> narrow_;
  std::size_t count_ = 0;
  std::map<std::tuple<StateKind, std::uint32_t, std::uint32_t>, Buffer> state_;
  std::map<Arena, Tensors> arenas_;
  std::map<std::string, Slice, std::less<>> own_;
};

}  // namespace rehearse
