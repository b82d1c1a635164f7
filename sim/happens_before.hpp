// Which ops are certain to have ended before another begins: stream order and edges, transitively.
//
// Vector clocks (Fidge 1988, Mattern 1989), one entry per (rank, stream). Only the clock of the op
// at hand is asked, and an earlier op is known by its place in its own stream alone (the "epoch" of
// FastTrack, Flanagan and Freund 2009), so a clock lives only until its last successor has it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program.hpp"
#include "sim/stream_table.hpp"

namespace rehearse {

class HappensBefore {
 public:
  /// Throws CheckFailed naming a cycle when the program has one. The program must outlive this.
  explicit HappensBefore(const Program& program);

  /// Every op after all that it waits for; program order unless edges point forward.
  std::span<const OpId> order() const { return order_; }

  /// Goes on to the next op of order(), which must be `id`.
  void advance(OpId id);
  /// True when `earlier`, an op already passed, must end before the op at hand may begin.
  bool before(OpId earlier) const;

 private:
  using Clock = std::vector<std::uint32_t>;  // by stream number: how many of its ops are before
  static constexpr std::uint32_t no_clock = UINT32_MAX;
  struct Epoch {
    std::uint32_t stream = 0, place = 0;
  };

  std::uint32_t take_clock();
  void join(OpId predecessor);
  void let_go(OpId predecessor);

  const Program& program_;
  StreamTable streams_;
  std::vector<OpId> order_;
  std::vector<Epoch> epochs_;           // by OpId
  std::vector<std::uint32_t> pending_;  // by OpId: successors that have not read its clock yet
  std::vector<std::uint32_t> slots_;    // by OpId: its clock's place in the pool
  std::vector<OpId> last_;              // by stream: the op passed last
  std::vector<std::uint32_t> passed_;   // by stream: how many were passed
  std::vector<Clock> pool_;
  std::vector<std::uint32_t> free_;
  std::uint32_t current_ = no_clock;
  OpId at_ = no_op;
};

}  // namespace rehearse
