// Kernels beside communication: while a transfer that kernels move is under way at a rank, the rank
// computes at 1 - communication_share of its rate.
//
//   comm              [── all-reduce ──]
//   compute  [ kernel 1 ][  kernel 2   ][ kernel 3 ]        2 takes 1 / (1 - share) as long
//
// All in whole numbers: a picosecond delivers 1024 parts of work, or 1024 × (1 - share) of them. A
// kernel ends with the picosecond that completes it, and what this one delivers beyond goes to the
// kernel that follows at once. So a stretch of kernels ends at the same time whether it is one op
// or many.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/program/program.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// The ranks at the ends of a connection, each once.
std::vector<Rank> ends_of(const Connection& connection);

class ComputeUnits {
 public:
  static constexpr std::int64_t whole = 1024;

  /// Ranks with kernels of one stream, at the ends of connections by kernels. (Where kernels of
  /// several streams meet, they share the unit among themselves, and nothing is taken.)
  ComputeUnits(const Program& program, const Topology& topology);

  /// Whether no rank's kernels can be slowed.
  bool empty() const { return units_.empty(); }
  bool slows(Rank rank) const { return unit_of(rank) != none; }
  /// The part of its rate that a rank keeps while a share is taken.
  double kept(Rank rank) const {
    return slows(rank) ? static_cast<double>(units_[unit_of(rank)].slow) / whole : 1;
  }
  /// The ranks at the ends of a connection whose kernels it slows.
  std::span<const Rank> slowed(ConnectionId connection) const;

  /// Begins a kernel that takes `alone`; gives the time it ends at if nothing changes.
  Time begin(Rank rank, OpId op, Time alone, Time now);
  /// A transfer begins or ends; gives the running kernel's new end, if there is one.
  std::optional<Time> take(Rank rank, Time now);
  std::optional<Time> give_back(Rank rank, Time now);
  /// The kernel that ends now; none when its end was moved.
  std::optional<OpId> end(Rank rank, Time now);

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Unit {
    std::int64_t slow = whole;  // parts a picosecond delivers while a share is taken
    std::uint32_t taken = 0;    // transfers under way
    OpId op = no_op;
    std::int64_t left = 0;  // parts, at `since`
    Time since, end;
    Time freed;               // when the last transfer ended
    std::int64_t beyond = 0;  // parts delivered beyond the kernel that ended at `end`
  };
  std::uint32_t unit_of(Rank rank) const {
    return index(rank) < number_.size() ? number_[index(rank)] : none;
  }
  static std::int64_t rate(const Unit& unit) { return unit.taken > 0 ? unit.slow : whole; }
  static void settle(Unit& unit, Time now);
  static Time foresee(Unit& unit, Time now);

  std::vector<std::uint32_t> number_;  // by rank
  std::vector<Unit> units_;
  std::vector<std::uint32_t> begin_{0};  // by connection, into ends_
  std::vector<Rank> ends_;
};

}  // namespace rehearse
