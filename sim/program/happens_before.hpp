// Which ops are certain to have ended before another begins: stream order and edges, transitively.
//
// A posted transfer is known by two things: it has left, which the next op on its stream waits for,
// and it has arrived, which those wait for who name it. Arrivals on one connection of one stream
// are in order, since nobody overtakes on the way; those of different connections are not.
//
//   stream   [ a: c0 ][ b: c0 ][ c: c1 ]       c begins: a and b have left, neither need be there
//   arrive           ····▶ a  ····▶ b ·▶ c     who names b: a and b are there; c: only c is
//
// Ops of one queue exclude each other, but nobody is before anybody unless edges say so. An entry
// of the clock counts along a chain of ordered ops, so a queue has as many entries as chains are
// needed: an op goes on with a chain whose last op it knows, or begins a new one. The requests of
// one worker are such a chain.
//
// Vector clocks (Fidge 1988, Mattern 1989), one entry per (rank, stream), and one for the arrivals
// of each posted connection on each stream. Only the clock of the op
// at hand is asked, and an earlier op is known by its place in its own stream alone (the "epoch" of
// FastTrack, Flanagan and Freund 2009), so a clock lives only until its last successor has it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program/program.hpp"
#include "sim/program/stream_table.hpp"

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
  /// True when it must free its stream by then: it has read what it reads.
  bool left_before(OpId earlier) const;
  /// True when it must end before the op at hand may write at its target.
  bool before_arrival(OpId earlier) const;
  /// True when both are on one queue and neither is posted: one of them ends before the other
  /// begins, whichever came first.
  bool excludes(OpId earlier) const;

 private:
  // How many ops of each stream have left, then how many of each posted connection have arrived.
  using Clock = std::vector<std::uint32_t>;
  static constexpr std::uint32_t no_clock = UINT32_MAX, not_posted = UINT32_MAX;
  struct Epoch {
    std::uint32_t stream = 0, place = 0;
    std::uint32_t arrivals = not_posted, arrival = 0;  // entry of the clock, and place there
  };

  void number_arrivals();
  std::uint32_t take_clock();
  void join(OpId predecessor);
  void join_chain(std::uint32_t queue, OpId id);
  void let_go(OpId predecessor);

  const Program& program_;
  StreamTable streams_;
  std::size_t clock_size_;
  std::vector<OpId> order_;
  std::vector<Epoch> epochs_;           // by OpId
  std::vector<std::uint32_t> pending_;  // by OpId: successors that have not read its clock yet
  std::vector<std::uint32_t> slots_;    // by OpId: its clock's place in the pool
  std::vector<OpId> last_;              // by stream: the op passed last
  std::vector<std::uint32_t> passed_;   // by stream: how many were passed
  struct Chain {
    std::uint32_t entry = 0, length = 0;  // of the clock; ops so far
  };
  std::vector<std::vector<Chain>> chains_;  // by stream: of a queue
  std::vector<Clock> pool_;
  std::vector<std::uint32_t> free_;
  std::uint32_t current_ = no_clock;
  OpId at_ = no_op;
};

}  // namespace rehearse
