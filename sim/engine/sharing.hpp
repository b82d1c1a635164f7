// Which resources of a Program can ever be short, and so need sharing. Most links of most programs
// cannot: a ring's links carry one transfer at a time. What cannot be short costs no solving.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/flow.hpp"
#include "sim/engine/paths.hpp"
#include "sim/program/program.hpp"

namespace rehearse {

/// Which of the crossed links may be short, when the transfers of each connection follow one
/// another on one stream (`streams`, any number per stream; several_streams where a connection is
/// used by more than one).
std::vector<bool> short_links(const Paths& paths, const CrossedLinks& crossed,
                              std::span<const std::uint64_t> streams, const Topology& topology);
inline constexpr std::uint64_t no_stream = UINT64_MAX, several_streams = UINT64_MAX - 1;

/// The resources that may be short: links, then the compute units of ranks whose kernels can meet.
class Sharing {
 public:
  Sharing(const Program& program, const Paths& paths, const Topology& topology);

  const std::vector<double>& capacities() const { return capacities_; }
  std::size_t longest() const { return longest_; }

  /// Crossings of a connection that may be short; empty: a transfer takes as long as it does alone.
  std::span<const FlowNetwork::Crossing> crossings(ConnectionId id) const {
    return std::span{crossings_}.subspan(begin_[index(id)],
                                         begin_[index(id) + 1] - begin_[index(id)]);
  }
  /// What holds a transfer back besides those crossings; infinite when nothing does.
  double limit(ConnectionId id) const { return limits_[index(id)]; }
  /// The compute unit of a rank where kernels of several streams can meet; empty elsewhere.
  std::span<const FlowNetwork::Crossing> compute(Rank rank) const {
    if (index(rank) >= units_.size() || units_[index(rank)].resource == no_unit) return {};
    return {&units_[index(rank)], 1};
  }
  /// The link behind a resource, or no_link for a compute unit.
  LinkId link(std::uint32_t resource) const { return links_[resource]; }

 private:
  static constexpr std::uint32_t no_unit = UINT32_MAX;
  void find_short_links(const Program&, const Paths&, const Topology&);
  void find_busy_units(const Program&);

  std::vector<double> capacities_;
  std::vector<LinkId> links_;  // by resource
  std::vector<std::uint32_t> begin_{0};
  std::vector<FlowNetwork::Crossing> crossings_;
  std::vector<double> limits_;
  std::vector<FlowNetwork::Crossing> units_;  // by rank
  std::size_t longest_ = 1;
};

}  // namespace rehearse
