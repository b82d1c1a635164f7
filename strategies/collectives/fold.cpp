// Colour refinement over hops and short links, with 64-bit hashes for colours.
#include "strategies/collectives/fold.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "sim/base/bits.hpp"
#include "sim/engine/sharing.hpp"
#include "strategies/collectives/blocks.hpp"

namespace rehearse {

namespace {

using Colour = std::uint64_t;

constexpr Colour join(Colour a, Colour b) { return splitmix(a + mixed(b)); }

std::size_t distinct(const std::vector<Colour>& colours) {
  return std::unordered_set<Colour>(colours.begin(), colours.end()).size();
}

/// Numbers the lanes of ranks, stage by stage: the order of hops on a lane matters within a stage;
/// a later stage waits for the earlier ones at its ends anyway.
struct Lanes {
  std::vector<std::uint32_t> of;    // by hop
  std::vector<std::uint32_t> size;  // hops on each lane

  explicit Lanes(const Pattern& pattern) {
    std::size_t ranks = 0, lanes = 0, stages = 0;
    for (const Hop& hop : pattern.hops) {
      ranks = std::max(ranks, index(hop.owner()) + 1);
      lanes = std::max(lanes, std::size_t{hop.lane} + 1);
      stages = std::max(stages, std::size_t{hop.stage} + 1);
    }
    std::vector<std::uint32_t> number(ranks * lanes * stages, UINT32_MAX);
    for (const Hop& hop : pattern.hops) {
      std::uint32_t& lane = number[(index(hop.owner()) * lanes + hop.lane) * stages + hop.stage];
      if (lane == UINT32_MAX) {
        lane = static_cast<std::uint32_t>(size.size());
        size.push_back(0);
      }
      of.push_back(lane);
      ++size[lane];
    }
  }
};

/// In which order to look at the hops: by stage, and after those they follow. Hops of a ring follow
/// each other in a circle; they are looked at together, by their colours of the round before.
struct Order {
  std::vector<std::uint32_t> hops;
  std::vector<bool> circular;

  explicit Order(const Pattern& pattern) : circular(pattern.hops.size(), true) {
    const std::size_t n = pattern.hops.size();
    std::vector<std::uint32_t> waits(n), begin(n + 2), followers;
    for (std::size_t h = 0; h < n; ++h)
      for (const HopId before : pattern.hops[h].follows)
        if (before != no_hop) ++waits[h], ++begin[index(before) + 2];
    for (std::size_t i = 2; i < begin.size(); ++i) begin[i] += begin[i - 1];
    followers.resize(begin.back());
    for (std::uint32_t h = 0; h < n; ++h)
      for (const HopId before : pattern.hops[h].follows)
        if (before != no_hop) followers[begin[index(before) + 1]++] = h;
    for (std::uint32_t h = 0; h < n; ++h)
      if (waits[h] == 0) hops.push_back(h);
    for (std::size_t next = 0; next < hops.size(); ++next) {
      const std::uint32_t h = hops[next];
      circular[h] = false;
      for (std::uint32_t f = begin[h]; f < begin[h + 1]; ++f)
        if (--waits[followers[f]] == 0) hops.push_back(followers[f]);
    }
    for (std::uint32_t h = 0; h < n; ++h)
      if (circular[h]) hops.push_back(h);
    std::stable_sort(hops.begin(), hops.end(), [&](std::uint32_t a, std::uint32_t b) {
      return pattern.hops[a].stage < pattern.hops[b].stage;
    });
  }
};

class Refinement {
 public:
  Refinement(const Pattern& pattern, const Paths& paths, const Topology& topology)
      : pattern_{pattern},
        topology_{topology},
        order_{pattern},
        lanes{pattern},
        hops(pattern.hops.size()),
        before_(pattern.hops.size()) {
    find_short(paths);
    staged_ = std::any_of(pattern.hops.begin(), pattern.hops.end(),
                          [](const Hop& hop) { return hop.stage > 0; });
    const auto several = [](std::uint32_t size) { return size > 1; };
    shares_lanes_ = std::any_of(lanes.size.begin(), lanes.size.end(), several);
    const bool in_circles = std::any_of(order_.circular.begin(), order_.circular.end(),
                                        [](bool circular) { return circular; });
    settles_at_once_ = !in_circles && !shares_lanes_ && short_links.empty();
    for (std::size_t h = 0; h < hops.size(); ++h) {
      const Hop& hop = pattern.hops[h];
      const auto id = static_cast<ConnectionId>(h);
      Colour fixed = join(hop.tag, static_cast<Colour>(hop.lane - hop.twin));
      fixed = join(fixed, static_cast<Colour>(hop.connection.shape) * 256 + hop.stage);
      fixed = join(fixed, hop.connection.posted);
      fixed = join(fixed, bits_of(paths.network(id)));
      fixed = join(fixed, static_cast<Colour>(paths.latency(id).ps()));
      fixed_.push_back(join(fixed, bits_of(paths.rate_alone(id).count())));
    }
  }

  /// Circular hops start with the given colours of their owners. True when stable within `rounds`.
  bool run(const std::vector<Colour>& start, std::size_t rounds) {
    for (std::size_t h = 0; h < hops.size(); ++h)
      hops[h] = order_.circular[h] ? start[index(pattern_.hops[h].owner())] : 0;
    links.assign(short_links.size(), 0);
    for (std::size_t l = 0; l < links.size(); ++l)
      links[l] = bits_of(topology_[short_links[l]].bandwidth.count());
    std::size_t classes = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      step();
      if (settles_at_once_) return true;
      const std::size_t now = distinct(hops) + distinct(links);
      if (now == classes) return true;
      classes = now;
    }
    return false;
  }

  std::span<const std::uint32_t> shorts_of(std::size_t hop) const {
    return std::span{crossings_}.subspan(begin_[hop], begin_[hop + 1] - begin_[hop]);
  }

 private:
  void find_short(const Paths& paths) {
    std::vector<std::uint64_t> streams;
    for (const Hop& hop : pattern_.hops) streams.push_back(stream_key(hop));
    const CrossedLinks crossed(paths, topology_);
    const std::vector<bool> is_short = rehearse::short_links(paths, crossed, streams, topology_);
    std::vector<std::uint32_t> place(is_short.size(), UINT32_MAX);
    for (std::size_t h = 0; h < pattern_.hops.size(); ++h) {
      for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h))) {
        const std::uint32_t number = crossed.number(crossing.link);
        if (!is_short[number]) continue;
        std::uint32_t& known = place[number];
        if (known == UINT32_MAX) {
          known = static_cast<std::uint32_t>(short_links.size());
          short_links.push_back(crossing.link);
        }
        crossings_.push_back(known);
      }
      begin_.push_back(static_cast<std::uint32_t>(crossings_.size()));
    }
  }

  // Rings whose links are never short and whose ranks enter together need less. Step s of a hop
  // waits for step s-1 of itself and of the hop before it, and all R steps move as many bytes: so
  // the slowest hop is never kept waiting, nobody falls behind it, and the stage ends after R times
  // its step, whoever its neighbours are. One hop of each latency and rate gives the exact end,
  // though not the begin of every other. Without this, one uneven leaf (9 nodes on each, and one
  // left over) would make every place in a ring unique.
  bool races_alone(std::size_t hop, bool enter_together) const {
    return enter_together && order_.circular[hop] && lanes.size[lanes.of[hop]] == 1 &&
           !pattern_.hops[hop].connection.posted && short_links.empty();
  }

  // Ranks remember what the hops of all stages so far were at them; a stage starts from that.
  void step() {
    before_ = hops;
    std::vector<Colour> mates(lanes.size.size()), past(topology_.rank_count()),
        present = past, link_sum(links.size());
    for (std::size_t h = 0; h < hops.size() && shares_lanes_; ++h)
      if (lanes.size[lanes.of[h]] > 1) mates[lanes.of[h]] += join(before_[h], fixed_[h]);
    std::uint8_t stage = 0;
    bool enter_together = true;
    for (const std::uint32_t h : order_.hops) {
      const Hop& hop = pattern_.hops[h];
      if (hop.stage != stage) {
        stage = hop.stage;
        past = present;
        enter_together =
            std::adjacent_find(past.begin(), past.end(), std::not_equal_to<>()) == past.end();
      }
      Colour colour = join(fixed_[h], mates[lanes.of[h]]);
      Colour ends = 0, followed = 0, shared = 0;
      if (stage > 0) for_each_end(hop.connection, [&](Rank r) { ends += mixed(past[index(r)]); });
      for (const HopId follows : hop.follows)
        if (follows != no_hop && !races_alone(h, enter_together))
          followed += mixed(order_.circular[h] ? before_[index(follows)] : hops[index(follows)]);
      for (const std::uint32_t link : shorts_of(h)) shared += mixed(links[link]);
      colour = join(join(colour, ends), join(followed, shared));
      hops[h] = join(before_[h], colour);  // only ever finer
      if (staged_)
        for_each_end(hop.connection, [&](Rank r) {
          const Colour part = r == hop.connection.source ? 1 : r == hop.connection.target ? 2 : 3;
          present[index(r)] += join(hops[h], part);
        });
      for (const std::uint32_t link : shorts_of(h)) link_sum[link] += mixed(hops[h]);
    }
    for (std::size_t l = 0; l < links.size(); ++l) links[l] = join(links[l], link_sum[l]);
  }

  const Pattern& pattern_;
  const Topology& topology_;
  const Order order_;
  bool staged_ = false;           // some hops wait for what others did at their ranks
  bool shares_lanes_ = false;     // some lanes have several hops in one stage
  bool settles_at_once_ = false;  // every colour follows from earlier ones: one round is enough
  std::vector<std::uint32_t> begin_{0}, crossings_;  // short links of each hop, by place
  std::vector<Colour> fixed_;

 public:
  const Lanes lanes;
  std::vector<LinkId> short_links;
  std::vector<Colour> links, hops;  // links by place in short_links

 private:
  std::vector<Colour> before_;
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

// Lanes are kept or left as a whole, since their hops follow one another: the first lane with a
// given set of colours stands for all such lanes. (Lanes of one rank may stand for each other: the
// channels of a ring, the children in a tree.)
std::vector<HopId> stand_ins(const Pattern& pattern, const Refinement& colours) {
  std::vector<Colour> lane_colours(colours.lanes.size.size());
  for (std::size_t h = 0; h < pattern.hops.size(); ++h)
    lane_colours[colours.lanes.of[h]] += mixed(colours.hops[h]);
  std::unordered_map<Colour, std::uint32_t> standing_lane;
  std::unordered_map<Colour, HopId> kept;
  for (std::size_t h = 0; h < pattern.hops.size(); ++h) {
    const std::uint32_t lane = colours.lanes.of[h];
    if (standing_lane.try_emplace(lane_colours[lane], lane).first->second != lane) continue;
    const bool added = kept.try_emplace(colours.hops[h], static_cast<HopId>(h)).second;
    ASSERT(added);  // on one lane they follow one another: there tags must differ
  }
  std::vector<HopId> stand_in;
  for (const Colour colour : colours.hops) stand_in.push_back(kept.at(colour));
  return stand_in;
}

Fold fold_of(const Pattern& pattern, const Paths& paths, const Refinement& colours,
             const Topology& topology) {
  Fold fold(pattern, stand_ins(pattern, colours));
  std::unordered_map<Colour, std::size_t> link_player;
  for (std::size_t l = 0; l < colours.links.size(); ++l)
    link_player.try_emplace(colours.links[l], l);

  for (const HopId hop : fold.kept()) {
    const auto id = static_cast<ConnectionId>(index(hop));
    fold.paths.push_back(
        {.latency = paths.latency(id), .stands_for = 0, .network = paths.network(id)});
    fold.limits.push_back(paths.rate_alone(id));
  }
  for (std::size_t h = 0; h < pattern.hops.size(); ++h) {
    const std::uint32_t place = fold.place(static_cast<HopId>(h));
    FoldedPath& path = fold.paths[place];
    ++path.stands_for;
    for (const std::uint32_t link : colours.shorts_of(h)) {
      // Hops are counted where they cross the link that stands for its colour.
      if (link_player.at(colours.links[link]) != link) continue;
      const LinkId standing = colours.short_links[link];
      // A rate that a short link sets is shared there; it is no limit of the hop's own.
      if (fold.limits[place] >= topology[standing].bandwidth) fold.limits[place] = {};
      const auto seen = std::find_if(path.crossings.begin(), path.crossings.end(),
                                     [&](const auto& c) { return c.link == standing; });
      if (seen == path.crossings.end())
        path.crossings.push_back({standing, 1});
      else
        ++seen->weight;
    }
  }
  return fold;
}

}  // namespace

Fold::Fold(const Pattern& pattern, std::span<const HopId> stand_in)
    : place_(pattern.hops.size(), UINT32_MAX) {
  ASSERT(stand_in.size() == pattern.hops.size());
  std::size_t ranks = 0;
  for (std::size_t h = 0; h < stand_in.size(); ++h) {
    if (index(stand_in[h]) == h) {
      place_[h] = static_cast<std::uint32_t>(kept_.size());
      kept_.push_back(stand_in[h]);
    }
    for_each_end(pattern.hops[h].connection,
                 [&](Rank rank) { ranks = std::max(ranks, index(rank) + 1); });
  }
  for (std::size_t h = 0; h < stand_in.size(); ++h) place_[h] = place_[index(stand_in[h])];

  begin_.assign(ranks + 2, 0);
  const auto visit = [&](auto&& act) {
    for (std::size_t h = 0; h < stand_in.size(); ++h)
      for_each_end(pattern.hops[h].connection,
                   [&](Rank rank) { act(index(rank), static_cast<HopId>(h)); });
  };
  visit([&](std::size_t rank, HopId) { ++begin_[rank + 2]; });
  for (std::size_t r = 2; r < begin_.size(); ++r) begin_[r] += begin_[r - 1];
  touching_.resize(begin_.back());
  visit([&](std::size_t rank, HopId hop) { touching_[begin_[rank + 1]++] = hop; });
}

Program connections_of(const Pattern& pattern) {
  Program program;
  for (const Hop& hop : pattern.hops) program.connect(hop.connection);
  return program;
}

Fold no_fold(const Pattern& pattern) {
  std::vector<HopId> itself;
  for (std::size_t h = 0; h < pattern.hops.size(); ++h) itself.push_back(static_cast<HopId>(h));
  return Fold(pattern, itself);
}

Fold find_fold(const Pattern& pattern, const Paths& paths, const Topology& topology) {
  Refinement refinement(pattern, paths, topology);
  constexpr std::size_t few = 6, enough = 64;
  if (refinement.run(std::vector<Colour>(topology.rank_count()), few) ||
      refinement.run(places(topology), enough))
    return fold_of(pattern, paths, refinement, topology);
  return no_fold(pattern);
}

}  // namespace rehearse
