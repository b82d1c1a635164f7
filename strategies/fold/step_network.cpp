// Families, messages and casts, each made when it is first asked for.
#include "strategies/fold/step_network.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "sim/engine/paths.hpp"

namespace rehearse {

namespace {

std::vector<GroupFamily::Group> lists_of(const RankGroups& groups) {
  std::vector<GroupFamily::Group> lists;
  for (std::size_t g = 0; g < groups.count(); ++g)
    lists.emplace_back(groups[g].begin(), groups[g].end());
  return lists;
}

RankGroups groups_of(const Placement& placement, const CollectiveUse& use) {
  switch (use.family) {
    case Family::tensor:
      return placement.groups(Dimension::tensor);
    case Family::context:
      return placement.groups(Dimension::context);
    case Family::expert:
      return placement.groups(Dimension::expert);
    case Family::replicas:
      return placement.groups(Replicas::all);
    case Family::shards:
      return placement.groups(Replicas::shards);
    case Family::copies:
      return placement.groups(Replicas::copies);
    case Family::expert_replicas:
      return placement.groups(Replicas::experts);
    case Family::ends:
      return placement.ends(use.first, use.last);
    case Family::stages:
      return placement.groups(Dimension::pipeline);
  }
  return {};
}

const std::string& algorithm_for(CollectiveKind kind, const CollectiveChoice& choice) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return choice.all_reduce;
    case CollectiveKind::reduce_scatter:
      return choice.reduce_scatter;
    case CollectiveKind::all_gather:
      return choice.all_gather;
    case CollectiveKind::all_to_all:
      return choice.all_to_all;
    default:
      return choice.broadcast;
  }
}

}  // namespace

std::uint16_t message_protocol_number(const Topology& topology) {
  for (std::uint16_t p = 0; p < topology.protocols.size(); ++p)
    if (topology.protocols[p].name == "simple") return p;
  return 0;
}

Protocol message_protocol(const Topology& topology) {
  return topology.protocols.empty() ? Protocol{}
                                    : topology.protocols[message_protocol_number(topology)];
}

StepNetwork::StepNetwork(Placement placement, CollectiveChoice choice, FamilyPool& pool)
    : placement_{std::move(placement)},
      choice_{std::move(choice)},
      pool_{pool},
      routing_{pool.routing()} {
  for (std::size_t r = 0; r < placement_.world(); ++r)
    pipeline_rank_.push_back(
        static_cast<std::uint32_t>(placement_.coordinates(static_cast<Rank>(r)).pipeline));
}

GroupFamily& StepNetwork::family(const CollectiveUse& use) {
  GroupFamily*& slot = families_[{use.family, use.first, use.last}];
  if (slot == nullptr) slot = &pool_.of(lists_of(groups_of(placement_, use)));
  return *slot;
}

const GroupFamily::Use& StepNetwork::use(const CollectiveUse& use) {
  return family(use).use(use.kind, use.size, algorithm_for(use.kind, choice_), choice_.protocol);
}

const std::vector<Traffic::Message>& StepNetwork::messages(const Handover& handover) {
  const auto [slot, is_new] = messages_.try_emplace({handover.source, handover.target});
  if (!is_new) return slot->second;
  const Topology& topology = routing_.topology();
  for (std::size_t r = 0; r < pipeline_rank_.size(); ++r) {
    if (pipeline_rank_[r] != handover.source) continue;
    const auto source = static_cast<Rank>(r);
    Coordinates there = placement_.coordinates(source);
    there.pipeline = handover.target;
    const Rank target = placement_.rank(there);
    slot->second.push_back(
        {source, target, routing_.route(topology.device_of(source), topology.device_of(target))});
  }
  return slot->second;
}

MessagePath StepNetwork::path(const Handover& handover, std::uint32_t message) {
  const Topology& topology = routing_.topology();
  const Protocol protocol = message_protocol(topology);
  double rate = std::numeric_limits<double>::infinity();
  if (protocol.limit.count() > 0) rate = protocol.limit.count();
  bool far = false;
  Time latency;
  for (const LinkId link : messages(handover)[message].links) {
    far = far || topology[link].kind == LinkKind::network;
    latency += topology[link].latency;
    rate = std::min(rate, topology[link].bandwidth.count());
  }
  return {latency + overhead_of(protocol, far), BytesPerSecond{rate * protocol.payload}};
}

const FoldedRanks& StepNetwork::fold(std::span<const CollectiveUse> uses,
                                     std::span<const Handover> handovers, bool fold,
                                     std::span<const std::uint64_t> own) {
  std::vector<Traffic> traffic;
  FoldKey key{{}, {handovers.begin(), handovers.end()}, fold, {own.begin(), own.end()}};
  for (const CollectiveUse& wanted : uses) {
    Traffic& next = traffic.emplace_back();
    next.lane = static_cast<std::uint32_t>(lane_of(wanted));
    next.groups = family(wanted).groups();
    next.is_last = is_joint(wanted.family);
    next.is_light = true;
    for (const GroupFamily::Use::Entry& entry : use(wanted).entries) {
      next.entries.push_back(entry.alike);
      next.is_light = next.is_light && entry.cost.wire == Bytes{0};
      std::get<0>(key).push_back(entry.alike);
    }
    std::get<0>(key).push_back(next.is_light ? this : nullptr);
  }
  const auto known = folded_.find(key);
  if (known != folded_.end()) return known->second;
  for (const Handover& handover : handovers) {
    Traffic& next = traffic.emplace_back();
    next.lane = static_cast<std::uint32_t>(handover.lane);
    next.messages = messages(handover);
  }
  return folded_
      .emplace(std::move(key), fold_ranks(pipeline_rank_, traffic, routing_.topology(), fold, own))
      .first->second;
}

Connection connection_of(const RememberedCollective& collective, std::vector<Rank> ranks) {
  Connection connection{.source = ranks.front(),
                        .target = ranks.front(),
                        .by_kernels = true,
                        .others = std::move(ranks)};
  if (collective.wire > Bytes{0})
    connection.limit =
        Bytes{collective.wire.count() / collective.bursts} / collective.moving().seconds();
  return connection;
}

FoldedPath path_of(const RememberedCollective& collective) {
  return {.latency = collective.wire == Bytes{0} ? collective.time : collective.lead,
          .bursts = collective.bursts,
          .gap = collective.gap};
}

const StepNetwork::Beside& StepNetwork::beside(const RememberedCollective& collective,
                                               Time kernels) {
  const auto [slot, is_new] = beside_.try_emplace({&collective, kernels.ps()});
  if (!is_new) return slot->second;
  Program program;
  const Rank rank{0};
  const ConnectionId way = program.connect(connection_of(collective, {rank}));
  program.folded.push_back(path_of(collective));
  program.add_transfer(comm_lane(0), {},
                       {.connection = way, .size = collective.wire, .wire = collective.wire}, {});
  const OpId work = program.add_compute(rank, Stream::compute, {}, {.fixed = kernels}, {});
  const Timeline timeline = pool_.engine().run(program);
  const Timeline::Span& span = timeline.spans[index(work)];
  return slot->second = {timeline.makespan, span.end - span.begin};
}

// Gradients, gathered parameters and the averages of copies have streams of their own, so that they
// can overlap. All groups of a lane are of one family: who shares a link in turns shares a stream.
Lane StepNetwork::lane_of(const CollectiveUse& use) {
  switch (use.family) {
    case Family::copies:
      return Lane::copies;
    case Family::ends:
    case Family::stages:
      return Lane::joint;
    case Family::replicas:
    case Family::shards:
    case Family::expert_replicas:
      return use.kind == CollectiveKind::all_gather || use.kind == CollectiveKind::broadcast
                 ? Lane::parameters
                 : Lane::gradients;
    default:
      return Lane::layer;
  }
}

std::vector<StepNetwork::Handover> handovers_of(const Schedule& schedule) {
  std::set<StepNetwork::Handover> pairs;
  for (std::uint32_t s = 0; s + 1 < schedule.stages; ++s) {
    const std::uint32_t here = schedule.rank_of[s], there = schedule.rank_of[s + 1];
    if (here == there) continue;
    pairs.insert({here, there, Lane::forward});
    pairs.insert({there, here, Lane::backward});
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace rehearse
