// Finding groups that are alike: the first one's pattern is moved to each other group, and the
// links it then crosses must correspond one to one.
#include "strategies/fold/group_family.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace rehearse {

namespace {

// Shares of links hardly depend on the size; they are read off at one that splits evenly.
constexpr Bytes reference_size = 64_MiB;

// More than these are simulated as so many longer ones: on rings of many ranks they lie so close
// that they are nearly even.
constexpr std::int64_t most_bursts = 8;

/// The pattern of `from` with every rank replaced by its counterpart in `to`.
Pattern moved(const Pattern& pattern, const GroupFamily::Group& from,
              const GroupFamily::Group& to) {
  std::unordered_map<Rank, Rank> counterpart;
  for (std::size_t i = 0; i < from.size(); ++i) counterpart.emplace(from[i], to[i]);
  Pattern result = pattern;
  for (Hop& hop : result.hops) {
    hop.connection.source = counterpart.at(hop.connection.source);
    hop.connection.target = counterpart.at(hop.connection.target);
    for (Rank& rank : hop.connection.others) rank = counterpart.at(rank);
    hop.connection.latency = Time{};  // as its route has it
    hop.connection.network = 0;
  }
  return result;
}

/// Which link of one group stands for which of another's, one to one.
class Correspondence {
 public:
  explicit Correspondence(const Topology& topology)
      : topology_{topology}, forth_(topology.links().size()), back_(topology.links().size()) {}

  /// False when the two do not correspond.
  bool find(const Paths& here, const Paths& there) {
    ++round_;
    for (std::size_t h = 0; h < here.size(); ++h) {
      const auto id = static_cast<ConnectionId>(h);
      const auto mine = here.crossings(id), theirs = there.crossings(id);
      if (here.latency(id) != there.latency(id) || mine.size() != theirs.size()) return false;
      for (std::size_t c = 0; c < mine.size(); ++c) {
        const LinkId a = mine[c].link, b = theirs[c].link;
        if (topology_[a].bandwidth != topology_[b].bandwidth) return false;
        if (!pair(forth_[index(a)], b) || !pair(back_[index(b)], a)) return false;
      }
    }
    return true;
  }
  LinkId operator[](LinkId link) const { return forth_[index(link)].link; }

 private:
  struct Partner {
    LinkId link{};
    std::uint32_t round = 0;  // in which it was found
  };
  bool pair(Partner& partner, LinkId link) const {
    if (partner.round != round_) partner = {link, round_};
    return partner.link == link;
  }

  const Topology& topology_;
  std::vector<Partner> forth_, back_;
  std::uint32_t round_ = 0;
};

/// Bytes that a collective puts on each link, in the order of links.
std::map<LinkId, double> bytes_on_links(const CollectiveRehearsal& rehearsal, Bytes size,
                                        std::uint16_t protocol) {
  const std::vector<double> carried = rehearsal.carried(size, protocol);
  std::map<LinkId, double> bytes;
  for (std::size_t h = 0; h < carried.size(); ++h)
    for (const auto& crossing : rehearsal.paths().crossings(static_cast<ConnectionId>(h)))
      bytes[crossing.link] += carried[h];
  return bytes;
}

double most_of(const std::map<LinkId, double>& bytes) {
  double most = 0;
  for (const auto& [link, amount] : bytes) most = std::max(most, amount);
  return most;
}

/// How many of its hops cross one of its busiest links at the same time: those of one stage that
/// pacing makes share.
std::uint32_t streams_of(const CollectiveRehearsal& rehearsal,
                         const std::map<LinkId, double>& bytes) {
  const double most = most_of(bytes);
  std::map<std::pair<LinkId, std::uint8_t>, std::uint32_t> together;  // by link and stage
  std::uint32_t streams = 1;
  for (std::size_t h = 0; h < rehearsal.pattern().hops.size(); ++h) {
    const Hop& hop = rehearsal.pattern().hops[h];
    if (hop.connection.limit.count() <= 0) continue;
    for (const auto& crossing : rehearsal.paths().crossings(static_cast<ConnectionId>(h)))
      if (bytes.at(crossing.link) == most)
        streams = std::max(streams, ++together[{crossing.link, hop.stage}]);
  }
  return streams;
}

/// What the first group's collective loads, in the order of links.
GroupFamily::Alike first_alone(std::uint32_t first, const CollectiveRehearsal& rehearsal) {
  const std::map<LinkId, double> bytes = bytes_on_links(rehearsal, reference_size, 0);
  const double most = most_of(bytes);
  GroupFamily::Alike result{{first}, {{}}};
  result.streams = streams_of(rehearsal, bytes);
  for (const auto& [link, amount] : bytes) {
    const auto share =
        static_cast<std::uint32_t>(LoadedLink::whole * result.streams * (amount / most));
    if (share > 0) result.loads.front().push_back({link, share});
  }
  return result;
}

/// The least time in which its links carry `wire`.
Seconds time_on_links(const GroupFamily::Alike& alike, double wire, const Topology& topology) {
  double longest = 0;
  for (const LoadedLink& load : alike.loads.front())
    longest = std::max(longest, wire * load.share / topology[load.link].bandwidth.count());
  return Seconds{longest};
}

bool is_pipelined(const CollectiveRehearsal& rehearsal) {
  const std::vector<Hop>& hops = rehearsal.pattern().hops;
  return std::any_of(hops.begin(), hops.end(),
                     [](const Hop& hop) { return hop.connection.posted; });
}

/// In how many steps one after the other it moves its bytes: each waits for the latency of one hop.
/// What is posted flows on evenly.
std::uint32_t steps_of(const CollectiveRehearsal& rehearsal, Time empty, std::uint16_t protocol,
                       const Topology& topology) {
  if (is_pipelined(rehearsal)) return 1;
  Time step = rehearsal.alpha();
  if (!topology.protocols.empty() && rehearsal.paths().size() > 0)
    step += overhead_of(topology.protocols[protocol], rehearsal.paths().network(ConnectionId{0}));
  if (step == Time{}) return 1;
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>((empty.ps() + step.ps() / 2) / step.ps(), 1, most_bursts));
}

/// Fills in when it moves the `most` bytes of its busiest link, such that no link is overfull when
/// it is alone: then it takes its remembered time exactly. `empty` is its time without bytes.
/// After its `launch`, of which `empty` has none.
void find_rhythm(RememberedCollective& cost, const GroupFamily::Alike& alike, double most,
                 Time empty, Time launch, const Topology& topology) {
  const Time running = cost.time - launch;
  const double all = most / (LoadedLink::whole * alike.streams);
  const std::int64_t bursts = cost.bursts;
  const auto needed = Time::round(time_on_links(alike, all, topology));
  const Time still = std::clamp(running - needed, Time{}, empty);
  cost.gap = Time::picoseconds(still.ps() / bursts);
  // What does not divide passes before the first burst. What flows on evenly has its latencies
  // before and among its bytes; a third of them before agrees best with every transfer simulated.
  cost.lead = launch + (bursts == 1 ? Time::picoseconds(empty.ps() / 3)
                                    : cost.gap + Time::picoseconds(running.ps() % bursts));
  double wire = all / static_cast<double>(bursts);
  const double least = time_on_links(alike, wire, topology).count();
  const double moving = cost.moving().seconds().count();
  if (least > moving) wire *= moving / least;
  cost.wire = Bytes{static_cast<std::int64_t>(wire) * bursts};
  if (cost.wire == Bytes{0}) cost.bursts = 1;
}

}  // namespace

GroupFamily::GroupFamily(std::vector<Group> groups, Routing& routing, Executor& engine)
    : groups_{std::move(groups)}, routing_{routing}, engine_{engine} {
  for (const Group& group : groups_) ASSERT(group.size() == groups_.front().size());
}

CollectiveChooser& GroupFamily::chooser(const Wanted& wanted, GroupNumber group) {
  auto& slot = choosers_[{wanted, group}];
  if (!slot) {
    CollectiveChooser::Wish wish;
    if (wanted.algorithm != "auto") wish.algorithms = {wanted.algorithm};
    if (wanted.protocol != "auto") wish.protocols = {wanted.protocol};
    slot = std::make_unique<CollectiveChooser>(
        CollectiveShape{.kind = wanted.kind, .group = groups_[group]}, routing_, wish);
  }
  return *slot;
}

// The buckets and tails of gradients have thousands of sizes; the algorithm is chosen for each
// power of two, as libraries choose it by thresholds, and simulated for the very size.
Candidate GroupFamily::best_at(const Wanted& wanted, GroupNumber group, Bytes size) {
  CollectiveChooser& choice = chooser(wanted, group);
  const auto step = std::bit_ceil(static_cast<std::uint64_t>(size.count()));
  const std::tuple key{wanted, group, step};
  auto known = choices_.find(key);
  if (known == choices_.end())
    known =
        choices_.emplace(key, choice.best(Bytes{static_cast<std::int64_t>(step)}, engine_)).first;
  return choice.again(known->second, size, engine_);
}

GroupFamily::Alike GroupFamily::find_alike(GroupNumber first,
                                           const CollectiveRehearsal& rehearsal) const {
  Correspondence link(routing_.topology());
  Alike result = first_alone(first, rehearsal);
  const std::vector<LoadedLink> loads = result.loads.front();
  const Paths here(connections_of(moved(rehearsal.pattern(), groups_[first], groups_[first])),
                   routing_);
  for (GroupNumber g = first + 1; g < groups_.size(); ++g) {
    const Pattern pattern = moved(rehearsal.pattern(), groups_[first], groups_[g]);
    const Paths paths(connections_of(pattern), routing_);
    if (!link.find(here, paths)) continue;
    result.groups.push_back(g);
    std::vector<LoadedLink>& theirs = result.loads.emplace_back(loads);
    for (LoadedLink& loaded : theirs) loaded.link = link[loaded.link];
  }
  return result;
}

const GroupFamily::Alike& GroupFamily::alike(const Wanted& wanted, GroupNumber first,
                                             std::string_view algorithm) {
  const std::tuple key{wanted.kind, first, algorithm};
  const auto known = alike_.find(key);
  if (known != alike_.end()) return known->second;
  const CollectiveRehearsal& rehearsal = chooser(wanted, first).rehearsal(algorithm);
  return alike_.emplace(key, find_alike(first, rehearsal)).first->second;
}

const GroupFamily::Use& GroupFamily::use(CollectiveKind kind, Bytes size,
                                         const std::string& algorithm,
                                         const std::string& protocol) {
  const Wanted wanted{kind, algorithm, protocol};
  const auto key = std::pair{wanted, size.count()};
  const auto known = uses_.find(key);
  if (known != uses_.end()) return known->second;

  Use use;
  std::vector<bool> has_entry(groups_.size());
  for (GroupNumber g = 0; g < groups_.size(); ++g) {
    if (has_entry[g]) continue;
    const Candidate best = best_at(wanted, g, size);
    const Time time = best.result.time;
    const Alike& others = alike(wanted, g, best.algorithm);
    CollectiveRehearsal& rehearsal = chooser(wanted, g).rehearsal(best.algorithm);
    const Time launch = rehearsal.launch(best.protocol);
    const Time empty =
        std::min(time, rehearsal.run(Bytes{0}, engine_, best.protocol).time) - launch;
    const Topology& topology = routing_.topology();
    const std::uint32_t steps = steps_of(rehearsal, empty, best.protocol, topology);
    RememberedCollective cost{.time = time,
                              .bursts = steps,
                              .algorithm = best.algorithm,
                              .protocol = best.protocol,
                              .is_pipelined = is_pipelined(rehearsal)};
    find_rhythm(cost, others, most_of(bytes_on_links(rehearsal, size, best.protocol)), empty,
                launch, topology);
    use.entries.push_back({cost, &others});
    for (const GroupNumber other : others.groups) has_entry[other] = true;
  }
  return uses_.emplace(key, std::move(use)).first->second;
}

GroupFamily& FamilyPool::of(const std::vector<GroupFamily::Group>& groups) {
  return families_.try_emplace(groups, groups, routing_, engine_).first->second;
}

}  // namespace rehearse
