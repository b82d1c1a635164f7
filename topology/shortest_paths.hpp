// Shortest paths towards one target, in a small graph of numbered vertices. Routing uses it three
// times: inside a node, in the fabric between nodes, and, where those two do not suffice, in all.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rehearse {

/// What routes are ordered by: avoidable detours first, then the time of a message, then hops.
struct Cost {
  std::uint64_t detours = 0;
  std::int64_t time = 0;  // ps
  std::uint32_t hops = 0;

  static constexpr Cost infinite() { return {UINT64_MAX, INT64_MAX, UINT32_MAX}; }
  friend constexpr bool operator==(const Cost&, const Cost&) = default;
  friend constexpr auto operator<=>(const Cost&, const Cost&) = default;
  /// Infinite absorbs; devices and latencies are bounded by the readers, so nothing else overflows.
  friend constexpr Cost operator+(const Cost& a, const Cost& b) {
    if (a == infinite() || b == infinite()) return infinite();
    return {a.detours + b.detours, a.time + b.time, a.hops + b.hops};
  }
};

struct Arc {
  std::uint32_t source, target;
  Cost cost;  // at least one hop, so paths never loop
};

/// Which of `count` equal ways: d-mod-k in mixed radix. The first choice spends the destination's
/// place on its switch, later ones the switch's own number. Then the flows of a shift permutation
/// take different links at every level of a fat tree (Zahavi, "D-Mod-K routing", 2010).
struct RouteSpread {
  std::size_t place = 0, group = 0;
  std::size_t pick(std::size_t count) {
    const std::size_t chosen = place % count;
    place = group + place / count;
    group = 0;
    return chosen;
  }
};

class ShortestPaths {
 public:
  /// `closed` vertices may begin or end a path, and never forward one.
  ShortestPaths(std::vector<Arc> arcs, std::vector<bool> closed);
  ~ShortestPaths();
  ShortestPaths(ShortestPaths&&) noexcept;

  Cost distance(std::uint32_t source, std::uint32_t target);
  /// Appends the arcs (positions in the constructor's list) of one shortest path; false: no way.
  bool walk(std::uint32_t source, std::uint32_t target, RouteSpread spread,
            std::vector<std::uint32_t>& arcs);
  /// Up to `most` shortest paths; none when there is no way, one empty one to itself.
  std::vector<std::vector<std::uint32_t>> all(std::uint32_t source, std::uint32_t target,
                                              std::size_t most);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rehearse
