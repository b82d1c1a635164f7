// The least time any correct algorithm needs for a collective on a topology. A result below it is
// wrong, whoever computed it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/program/program.hpp"
#include "topology/topology.hpp"

namespace rehearse {

struct CollectiveBound {
  Time latency;          // data must travel at least this far
  Time bandwidth;        // bytes must pass the narrowest place
  std::string limiting;  // that place: "out of node0/gpu3", "into node 2", "out of all ranks"
  /// The larger of the two: latency may hide behind other bytes, so they do not add up.
  Time least() const { return latency > bandwidth ? latency : bandwidth; }
};

/// The bounds of one collective on one group, made once and asked for many sizes.
class CollectiveBounds {
 public:
  /// `root` is a position in the group, for broadcast and reduce.
  CollectiveBounds(CollectiveKind kind, std::span<const Rank> group, const Topology& topology,
                   std::uint32_t root = 0);

  /// `size` is the collective's data on one rank: what Collective::data holds.
  CollectiveBound at(Bytes size) const;
  /// Throws CheckFailed when `time` is below the bounds at this size, rounding aside.
  void check(Bytes size, Time time) const;

 private:
  /// At least share * size - padding bytes must pass a place of this rate.
  struct Cut {
    double share = 0, padding = 0, rate = 0;
    std::string place;
  };
  struct Place {
    double out = 0, in = 0;  // bandwidth of all links that leave it, that enter it
    std::uint32_t members = 0, leaving = 0;
    bool has_root = false;
  };
  struct Demand {
    double share = 0;       // of the collective's size
    std::size_t parts = 0;  // how many roundings of a part to a whole element it contains
  };

  void add(Demand demand, double rate, std::string place);
  void add_place(const Place& place, const std::string& name);
  void add_totals(std::span<const Place> places, bool may_combine, const std::string& name);
  Demand out_of(const Place& place) const;
  Demand into(const Place& place) const;

  CollectiveKind kind_;
  std::size_t ranks_;
  Time latency_;
  std::vector<Cut> cuts_;
};

CollectiveBound collective_lower_bound(CollectiveKind kind, std::span<const Rank> group, Bytes size,
                                       const Topology& topology, std::uint32_t root = 0);

}  // namespace rehearse
