// Colour refinement over ranks, hops and links, with 64-bit hashes for colours.
#include "strategies/collectives/fold.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "strategies/collectives/blocks.hpp"

namespace rehearse {

namespace {

using Colour = std::uint64_t;

// splitmix64's finaliser: every input bit reaches every output bit.
constexpr Colour mix(Colour x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr Colour join(Colour a, Colour b) { return mix(a + 0x9e3779b97f4a7c15u + mix(b)); }

const Protocol& protocol_of(const Pattern& pattern, const Hop& hop) {
  static const Protocol plain;
  return pattern.protocols.empty() ? plain : pattern.protocols[hop.connection.protocol];
}

std::size_t distinct(std::vector<Colour> colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

class Refinement {
 public:
  Refinement(const Pattern& pattern, const Paths& paths, const Topology& topology)
      : pattern_{pattern}, topology_{topology}, hops(pattern.hops.size()) {
    std::vector<std::uint32_t> place(topology.links().size(), UINT32_MAX);
    for (std::size_t h = 0; h < pattern.hops.size(); ++h) {
      for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h))) {
        std::uint32_t& known = place[index(crossing.link)];
        if (known == UINT32_MAX) {
          known = static_cast<std::uint32_t>(used_links.size());
          used_links.push_back(crossing.link);
        }
        crossings_.push_back(known);
      }
      begin_.push_back(static_cast<std::uint32_t>(crossings_.size()));
    }
    for (const Hop& hop : pattern.hops) {
      const Protocol& protocol = protocol_of(pattern, hop);
      Colour fixed = join(hop.tag, static_cast<Colour>(hop.lane - hop.twin));
      fixed = join(fixed, static_cast<Colour>(hop.connection.shape));
      fixed = join(fixed, static_cast<Colour>(protocol.overhead.ps()));
      fixed_.push_back(join(fixed, std::bit_cast<Colour>(protocol.limit.count())));
    }
  }

  /// Ranks start with the given colours. True when stable within `rounds`.
  bool run(std::vector<Colour> start, std::size_t rounds) {
    ranks = std::move(start);
    links.clear();
    std::fill(hops.begin(), hops.end(), Colour{0});
    for (const LinkId used : used_links) {
      const Link& link = topology_[used];
      links.push_back(join(std::bit_cast<Colour>(link.bandwidth.count()),
                           static_cast<Colour>(link.latency.ps())));
    }
    std::size_t before = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      step();
      const std::size_t classes = distinct(hops) + distinct(ranks) + distinct(links);
      if (classes == before) return true;
      before = classes;
    }
    return false;
  }

 private:
  void step() {
    std::vector<Colour> rank_sum(ranks.size()), link_sum(links.size());
    const std::vector<Colour> hops_before = hops;
    for (std::size_t h = 0; h < hops.size(); ++h) {
      const Hop& hop = pattern_.hops[h];
      const Connection& connection = hop.connection;
      const bool branches = connection.shape != Connection::Shape::point_to_point;
      Colour colour = join(fixed_[h], ranks[index(connection.source)]);
      colour = join(colour, ranks[index(connection.target)]);
      Colour others = 0;
      for (const Rank rank : connection.others) others += mix(ranks[index(rank)]);
      colour = join(colour, others);
      Colour crossed = 0;  // in order along a route, in any order over a union of branches
      for (const std::uint32_t link : crossed_by(h))
        crossed = branches ? crossed + mix(links[link]) : join(crossed, links[link]);
      Colour followed = 0;
      for (const HopId before : hop.follows)
        if (before != no_hop) followed += mix(hops_before[index(before)]);
      hops[h] = join(join(colour, crossed), followed);
      rank_sum[index(connection.source)] += join(hops[h], 1);
      rank_sum[index(connection.target)] += join(hops[h], 2);
      for (const Rank rank : connection.others) rank_sum[index(rank)] += join(hops[h], 3);
      for (const std::uint32_t link : crossed_by(h)) link_sum[link] += mix(hops[h]);
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r] = join(ranks[r], rank_sum[r]);
    for (std::size_t l = 0; l < links.size(); ++l) links[l] = join(links[l], link_sum[l]);
  }

  const Pattern& pattern_;
  const Topology& topology_;
  std::vector<std::uint32_t> begin_{0}, crossings_;  // of each hop, as places in used_links
  std::vector<Colour> fixed_;

 public:
  std::span<const std::uint32_t> crossed_by(std::size_t hop) const {
    return std::span{crossings_}.subspan(begin_[hop], begin_[hop + 1] - begin_[hop]);
  }
  std::vector<LinkId> used_links;
  std::vector<Colour> ranks, links, hops;  // links by their place in used_links
};

// A finer start than "all alike", for rings that cross a boundary only every few nodes: there a
// difference would otherwise travel one hop a round. Ranks begin with the place of their node among
// the nodes before it on the same leaf.
std::vector<Colour> places(const Topology& topology) {
  const std::vector<DeviceId> leaf = leaf_by_node(topology);
  std::vector<Colour> place(leaf.size());
  for (std::size_t n = 1; n < leaf.size(); ++n)
    place[n] = leaf[n] == leaf[n - 1] ? place[n - 1] + 1 : 0;
  std::vector<Colour> start;
  for (const DeviceId device : topology.ranks()) {
    const NodeId node = topology[device].node;
    start.push_back(node == no_node ? 0 : place[index(node)]);
  }
  return start;
}

// The first rank of every colour plays the role; of its hops, each stands for those of its colour,
// also for its own on other lanes (the channels of a ring, the children in a tree): they begin and
// end together. On one lane they would follow one another, so there they must differ in tag.
Fold fold_of(const Pattern& pattern, const Paths& paths, const Refinement& colours) {
  Fold fold;
  fold.role.assign(colours.ranks.size(), no_role);
  std::unordered_map<Colour, std::uint32_t> role_of;
  std::vector<Rank> player;
  for (std::size_t r = 0; r < colours.ranks.size(); ++r) {
    const auto [found, added] =
        role_of.try_emplace(colours.ranks[r], static_cast<std::uint32_t>(player.size()));
    if (added) player.push_back(static_cast<Rank>(r));
    fold.role[r] = found->second;
  }
  fold.roles = player.size();

  std::unordered_map<Colour, HopId> kept;
  for (std::size_t h = 0; h < pattern.hops.size(); ++h) {
    const Rank owner = pattern.hops[h].owner();
    if (player[fold.role[index(owner)]] != owner) continue;
    const auto [first, added] = kept.try_emplace(colours.hops[h], static_cast<HopId>(h));
    ASSERT(added || pattern[first->second].lane != pattern.hops[h].lane);
  }
  fold.kept = kept.size();

  std::unordered_map<Colour, std::size_t> link_player;
  for (std::size_t l = 0; l < colours.links.size(); ++l)
    link_player.try_emplace(colours.links[l], l);

  fold.paths.assign(pattern.hops.size(), FoldedPath{{}, {}, 0});
  for (std::size_t h = 0; h < pattern.hops.size(); ++h) {
    const HopId stand_in = kept.at(colours.hops[h]);
    fold.stand_in.push_back(stand_in);
    FoldedPath& path = fold.paths[index(stand_in)];
    if (index(stand_in) == h)
      path.latency = paths.latency(static_cast<ConnectionId>(h)) -
                     protocol_of(pattern, pattern.hops[h]).overhead;
    for (const std::uint32_t link : colours.crossed_by(h)) {
      // Hops are counted where they cross the link that stands for its colour.
      if (link_player.at(colours.links[link]) != link) continue;
      const LinkId standing = colours.used_links[link];
      const auto seen = std::find_if(path.crossings.begin(), path.crossings.end(),
                                     [&](const auto& c) { return c.link == standing; });
      if (seen == path.crossings.end())
        path.crossings.push_back({standing, 1});
      else
        ++seen->weight;
    }
  }
  for (const HopId stand_in : fold.stand_in) ++fold.paths[index(stand_in)].stands_for;
  return fold;
}

}  // namespace

Program connections_of(const Pattern& pattern) {
  Program program;
  program.protocols = pattern.protocols;
  for (const Hop& hop : pattern.hops) program.connect(hop.connection);
  return program;
}

Fold no_fold(const Pattern& pattern, const Topology& topology) {
  Fold fold;
  fold.roles = topology.rank_count();
  fold.kept = pattern.hops.size();
  for (std::size_t r = 0; r < fold.roles; ++r) fold.role.push_back(static_cast<std::uint32_t>(r));
  for (std::size_t h = 0; h < fold.kept; ++h) fold.stand_in.push_back(static_cast<HopId>(h));
  return fold;
}

Fold find_fold(const Pattern& pattern, const Paths& paths, const Topology& topology) {
  Refinement refinement(pattern, paths, topology);
  constexpr std::size_t few = 8, enough = 64;
  if (refinement.run(std::vector<Colour>(topology.rank_count()), few) ||
      refinement.run(places(topology), enough))
    return fold_of(pattern, paths, refinement);
  return no_fold(pattern, topology);
}

}  // namespace rehearse
