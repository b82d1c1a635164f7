// Colour refinement over ranks, flows and links, then one of each colour.
#include "strategies/fold/folded_ranks.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "sim/base/bits.hpp"

namespace rehearse {

namespace {

using Colour = std::uint64_t;

/// Of an ordered pair. Sums of these are the colour of a set, whatever its order.
Colour mix(Colour a, Colour b) { return splitmix(splitmix(a) + b); }

/// One group's collective, or one message.
struct Flow {
  std::uint32_t traffic = 0, entry = 0;
  bool ordered = false;  // sender and receiver differ
  std::span<const Rank> members;
  std::vector<LoadedLink> loads;  // on links that may be short
};

class RankFolding {
 public:
  RankFolding(std::span<const std::uint32_t> pipeline_rank, std::span<const Traffic> traffic,
              const Topology& topology)
      : pipeline_rank_{pipeline_rank}, traffic_{traffic}, topology_{topology} {
    for (std::uint32_t t = 0; t < traffic.size(); ++t) add(t);
    drop_links_of_one_user();
  }

  FoldedRanks fold(bool fold, std::span<const Colour> own) {
    start(own);
    const bool settled = fold && refine();
    if (!settled) no_two_alike();
    FoldedRanks result;
    result.folded = settled;
    choose_representatives(result);
    form_groups(result);
    for (std::uint32_t t = 0; t < result.traffic.size(); ++t)
      order_ops(result, traffic_[t], result.traffic[t]);
    return result;
  }

 private:
  void add(std::uint32_t t) {
    const Traffic& traffic = traffic_[t];
    std::vector<bool> taken(traffic.groups.size());
    for (std::uint32_t e = 0; e < traffic.entries.size(); ++e) {
      const GroupFamily::Alike& alike = *traffic.entries[e];
      for (std::size_t i = 0; i < alike.groups.size(); ++i) {
        const std::uint32_t group = alike.groups[i];
        if (taken[group]) continue;  // an earlier entry has it
        taken[group] = true;
        flows_.push_back({t, e, false, traffic.groups[group], {}});
        if (!traffic.is_light) flows_.back().loads = alike.loads[i];
      }
    }
    for (std::uint32_t m = 0; m < traffic.messages.size(); ++m) {
      const Traffic::Message& message = traffic.messages[m];
      ends_.push_back({message.source, message.target});
      std::vector<LoadedLink> loads;
      for (const LinkId link : message.links) loads.push_back({link, LoadedLink::whole});
      flows_.push_back({t, m, true, {}, std::move(loads)});
    }
  }

  void drop_links_of_one_user() {
    std::size_t next_end = 0;
    const std::size_t all = topology_.links().size();
    std::vector<Colour> user(all);
    std::vector<std::uint8_t> users(all);  // none, one, several
    for (Flow& flow : flows_) {
      if (flow.ordered) flow.members = ends_[next_end++];
      const Colour key = key_of(flow);
      for (const LoadedLink& load : flow.loads) {
        const std::size_t link = index(load.link);
        if (users[link] == 0) user[link] = key, users[link] = 1;
        if (user[link] != key) users[link] = 2;
      }
    }
    for (Flow& flow : flows_)
      std::erase_if(flow.loads,
                    [&](const LoadedLink& load) { return users[index(load.link)] < 2; });
    number_.resize(all);
    for (std::size_t link = 0; link < all; ++link) {
      if (users[link] < 2) continue;
      number_[link] = static_cast<std::uint32_t>(links_.size());
      links_.push_back(static_cast<LinkId>(link));
    }
  }

  void start(std::span<const Colour> own) {
    for (const std::uint32_t place : pipeline_rank_) ranks_.push_back(splitmix(place));
    for (std::size_t r = 0; r < own.size(); ++r) ranks_[r] = mix(ranks_[r], own[r]);
    for (const LinkId link : links_)
      link_colours_.push_back(splitmix(bits_of(topology_[link].bandwidth.count())));
    flow_colours_.assign(flows_.size(), 0);
  }

  void no_two_alike() {
    for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i] = i;
    for (std::size_t i = 0; i < flow_colours_.size(); ++i) flow_colours_[i] = i;
    for (std::size_t i = 0; i < link_colours_.size(); ++i) link_colours_[i] = i;
  }

  bool refine() {
    std::size_t before = 0;
    for (int round = 0; round < 64; ++round) {
      colour_flows();
      colour_links_and_ranks();
      const std::size_t now = distinct(flow_colours_) + distinct(ranks_) + distinct(link_colours_);
      if (now == before) return true;
      before = now;
    }
    return false;
  }

  static std::size_t distinct(const std::vector<Colour>& colours) {
    return std::unordered_set<Colour>(colours.begin(), colours.end()).size();
  }

  void colour_flows() {
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const Flow& flow = flows_[f];
      // Messages of one kind are alike at first: what tells them apart is what they cross.
      Colour colour = mix(flow.traffic, flow.ordered ? message_colour(flow) : flow.entry);
      Colour sum = 0;
      for (std::size_t m = 0; m < flow.members.size(); ++m)
        sum += mix(ranks_[index(flow.members[m])], flow.ordered ? m : 0);
      colour = mix(colour, sum);
      sum = 0;
      for (const LoadedLink& load : flow.loads)
        sum += mix(link_colours_[number_[index(load.link)]], load.share);
      flow_colours_[f] = mix(colour, sum);
    }
  }

  Colour message_colour(const Flow& flow) const {
    const Traffic::Message& message = traffic_[flow.traffic].messages[flow.entry];
    Colour colour = message.links.size();
    for (const LinkId link : message.links)
      colour += mix(bits_of(topology_[link].bandwidth.count()),
                    static_cast<Colour>(topology_[link].latency.ps()));
    return colour;
  }

  void colour_links_and_ranks() {
    std::vector<Colour> links(links_.size()), ranks(ranks_.size());
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const Flow& flow = flows_[f];
      for (const LoadedLink& load : flow.loads)
        links[number_[index(load.link)]] += mix(flow_colours_[f], load.share);
      for (std::size_t m = 0; m < flow.members.size(); ++m)
        ranks[index(flow.members[m])] += mix(flow_colours_[f], flow.ordered ? m : 0);
    }
    for (std::size_t l = 0; l < links.size(); ++l)
      link_colours_[l] = mix(link_colours_[l], links[l]);
    for (std::size_t r = 0; r < ranks.size(); ++r) ranks_[r] = mix(ranks_[r], ranks[r]);
  }

  void choose_representatives(FoldedRanks& folded) {
    const std::uint32_t places =
        1 + *std::max_element(pipeline_rank_.begin(), pipeline_rank_.end());
    std::vector<std::vector<std::uint32_t>> by_place(places);  // first ranks of each colour
    std::unordered_map<Colour, std::uint32_t> ranks_of;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r)
      if (ranks_of[ranks_[r]]++ == 0) by_place[pipeline_rank_[r]].push_back(r);
    for (std::uint32_t place = 0; place < places; ++place) {
      folded.begin.push_back(static_cast<std::uint32_t>(folded.representatives.size()));
      for (const std::uint32_t r : by_place[place]) {
        representative_of_.emplace(ranks_[r],
                                   static_cast<std::uint32_t>(folded.representatives.size()));
        folded.representatives.push_back({static_cast<Rank>(r), place, ranks_of[ranks_[r]]});
      }
    }
    folded.begin.push_back(static_cast<std::uint32_t>(folded.representatives.size()));
  }

  void form_groups(FoldedRanks& folded) {
    std::unordered_map<Colour, LinkId> stand_in;  // of each colour of links, its first
    for (std::size_t l = links_.size(); l-- > 0;) stand_in[link_colours_[l]] = links_[l];
    folded.traffic.resize(traffic_.size());
    for (FoldedRanks::GroupSet& groups : folded.traffic)
      groups.of_representative.assign(folded.representatives.size(), FoldedRanks::none);
    const std::vector<Users> users = users_of_links();
    std::unordered_map<Colour, std::uint32_t> group_of;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const Flow& flow = flows_[f];
      FoldedRanks::GroupSet& groups = folded.traffic[flow.traffic];
      const auto [known, is_new] =
          group_of.emplace(flow_colours_[f], static_cast<std::uint32_t>(groups.groups.size()));
      if (is_new)
        groups.groups.push_back(new_group(flow, known->second, groups));
      else
        ++groups.groups[known->second].stands_for;
      FoldedRanks::Group& group = groups.groups[known->second];
      for (const LoadedLink& load : flow.loads) {
        const std::uint32_t link = number_[index(load.link)];
        if (stand_in.at(link_colours_[link]) == load.link) add_crossing(group.crossings, load);
        meet(group, flow, users[link]);
      }
    }
  }

  // Groups that reach over pipeline ranks have their ops in one row, others in one for each.
  static void order_ops(const FoldedRanks& folded, const Traffic& traffic,
                        FoldedRanks::GroupSet& set) {
    const std::size_t pipeline_ranks = folded.begin.size() - 1;
    set.in_rank.resize(pipeline_ranks);
    if (!traffic.messages.empty())
      set.arrival.assign(folded.representatives.size(), FoldedRanks::none);
    std::vector<std::uint32_t> op_of(set.groups.size());
    for (std::uint32_t g = 0; g < set.groups.size(); ++g) {
      const std::vector<std::uint32_t>& members = set.groups[g].representatives;
      std::vector<std::uint32_t>& row =
          set.in_rank[folded.representatives[members.front()].pipeline_rank].groups;
      op_of[g] = traffic.is_last ? g : static_cast<std::uint32_t>(row.size());
      row.push_back(g);
      if (!traffic.messages.empty()) set.arrival[members[1]] = op_of[g];
    }
    for (std::size_t p = 0; p < pipeline_ranks; ++p)
      for (std::uint32_t r = folded.begin[p]; r < folded.begin[p + 1]; ++r) {
        const std::uint32_t group = set.of_representative[r];
        set.in_rank[p].op_of.push_back(group == FoldedRanks::none ? group : op_of[group]);
      }
  }

  /// Who uses a link: the lanes, the first user of each, and the pipeline rank of all of them.
  struct Users {
    static constexpr std::uint32_t nobody = UINT32_MAX, several = UINT32_MAX - 1;
    std::uint32_t place = nobody;
    std::uint32_t lanes = 0, crowded = 0;  // bits: lanes in use, lanes with more than one user
    std::array<Colour, 32> user{};
  };

  static std::uint32_t bit(std::uint32_t lane) { return 1u << lane; }

  std::vector<Users> users_of_links() const {
    std::vector<Users> users(links_.size());
    for (const Flow& flow : flows_) {
      if (traffic_[flow.traffic].is_last) continue;
      const std::uint32_t lane = traffic_[flow.traffic].lane;
      const std::uint32_t place = pipeline_rank_[index(flow.members.front())];
      for (const LoadedLink& load : flow.loads) {
        Users& all = users[number_[index(load.link)]];
        if (all.place == Users::nobody) all.place = place;
        if (all.place != place) all.place = Users::several;
        Colour& first = all.user[lane];
        if ((all.lanes & bit(lane)) == 0) first = key_of(flow);
        if (first != key_of(flow)) all.crowded |= bit(lane);
        all.lanes |= bit(lane);
      }
    }
    return users;
  }

  void meet(FoldedRanks::Group& group, const Flow& flow, const Users& users) const {
    const std::uint32_t own = bit(traffic_[flow.traffic].lane);
    group.lanes_met |= users.lanes & ~own;
    if (users.place == Users::several || (users.crowded & own) != 0) group.meets_others = true;
  }

  /// What one rank's lane, or one group's, does comes one after the other.
  Colour key_of(const Flow& flow) const {
    return mix(traffic_[flow.traffic].lane, index(flow.members.front()));
  }

  FoldedRanks::Group new_group(const Flow& flow, std::uint32_t number,
                               FoldedRanks::GroupSet& groups) const {
    FoldedRanks::Group group{
        .representatives = {}, .entry = flow.entry, .stands_for = 1, .crossings = {}};
    for (const Rank member : flow.members) {
      const std::uint32_t representative = representative_of_.at(ranks_[index(member)]);
      if (std::find(group.representatives.begin(), group.representatives.end(), representative) ==
              group.representatives.end() ||
          flow.ordered)
        group.representatives.push_back(representative);
    }
    for (const std::uint32_t representative : group.representatives) {
      groups.of_representative[representative] = number;
      if (flow.ordered) break;  // the sender's
    }
    return group;
  }

  static void add_crossing(std::vector<FoldedPath::Crossing>& crossings, const LoadedLink& load) {
    for (FoldedPath::Crossing& crossing : crossings)
      if (crossing.link == load.link) return void(crossing.weight += load.share);
    crossings.push_back({load.link, load.share});
  }

  std::span<const std::uint32_t> pipeline_rank_;
  std::span<const Traffic> traffic_;
  const Topology& topology_;
  std::vector<Flow> flows_;
  std::vector<std::array<Rank, 2>> ends_;  // of messages, in the order of their flows
  std::vector<LinkId> links_;              // those that may be short
  std::vector<std::uint32_t> number_;      // by link, for those
  std::vector<Colour> ranks_, flow_colours_, link_colours_;
  std::unordered_map<Colour, std::uint32_t> representative_of_;
};

}  // namespace

FoldedRanks fold_ranks(std::span<const std::uint32_t> pipeline_rank,
                       std::span<const Traffic> traffic, const Topology& topology, bool fold,
                       std::span<const std::uint64_t> own) {
  ASSERT(!pipeline_rank.empty() && (own.empty() || own.size() == pipeline_rank.size()));
  return RankFolding(pipeline_rank, traffic, topology).fold(fold, own);
}

}  // namespace rehearse
