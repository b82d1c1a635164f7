// Flows of one folded group share a connection, unless each is longer by a factor of its own.
#include "strategies/lowering/flows.hpp"

#include <algorithm>

#include "strategies/plan/stage_pricing.hpp"

namespace rehearse {

namespace {

class Flows {
 public:
  Flows(StepProgram& step, const StepPlan& plan, StepNetwork& network, const FoldedRanks& folded,
        const Imperfections& imperfections)
      : program_{step.program},
        plan_{plan},
        network_{network},
        folded_{folded},
        imperfections_{imperfections},
        handovers_{handovers_of(plan.schedule)},
        exchanges_(folded.begin.size() - 1) {
    program_.folded.resize(program_.connections().size());
    for (const FoldedRanks::GroupSet& set : folded.traffic)
      connections_.emplace_back(set.groups.size(), no_connection);
    for (const CollectiveUse& use : plan.uses) costs_.push_back(&network.use(use));
    is_flow_.resize(program_.connections().size());
  }

  void run(const Communication& what) {
    const FoldedRanks::GroupSet& set = folded_.traffic[what.traffic];
    if (!what.is_joint) {
      ++exchanges_[what.pipeline_rank];
      const std::vector<std::uint32_t>& groups = set.in_rank[what.pipeline_rank].groups;
      for (std::size_t k = 0; k < groups.size(); ++k)
        make_flow(what, k, groups[k], exchanges_[what.pipeline_rank]);
      return;
    }
    for (std::uint64_t& number : exchanges_) ++number;
    for (std::uint32_t g = 0; g < set.groups.size(); ++g) {
      const std::uint32_t first = set.groups[g].representatives.front();
      make_flow(what, g, g, ++exchanges_[folded_.representatives[first].pipeline_rank]);
    }
  }

  void finish() {
    program_.drop_unused_collectives();
    program_.protocols.clear();
  }

 private:
  // The `number`-th exchange of its pipeline rank.
  void make_flow(const Communication& what, std::size_t place, std::uint32_t group,
                 std::uint64_t number) {
    const auto id = static_cast<OpId>(index(what.first) + place);
    const bool is_collective = what.traffic < plan_.uses.size();
    const ConnectionId way = is_collective ? of_collective(what.traffic, group, number)
                                           : of_message(what, group, number, id);
    const Bytes wire = is_collective ? cost_of(what.traffic, group).wire
                                     : Bytes{what.size.count() / LoadedLink::whole};
    program_.set_transfer(id, {.connection = way, .size = wire, .wire = wire});
  }

  const RememberedCollective& cost_of(std::uint32_t use, std::uint32_t group) const {
    return costs_[use]->entries[folded_.traffic[use].groups[group].entry].cost;
  }

  double factor(Rank first, std::uint64_t number) const {
    return imperfections_.perturbs_exchanges() ? imperfections_.exchange(first, number) : 1;
  }

  static Time longer(Time time, double factor) {
    return factor == 1 ? time : Time::round(Seconds{time.seconds().count() * factor});
  }

  Rank rank_of(std::uint32_t representative) const {
    return folded_.representatives[representative].rank;
  }

  ConnectionId of_collective(std::uint32_t use, std::uint32_t number_of_group,
                             std::uint64_t number) {
    ConnectionId& known = connections_[use][number_of_group];
    if (known != no_connection && !imperfections_.perturbs_exchanges()) return known;
    const FoldedRanks::Group& group = folded_.traffic[use].groups[number_of_group];
    const RememberedCollective& cost = cost_of(use, number_of_group);
    std::vector<Rank> ranks;
    for (const std::uint32_t member : group.representatives) ranks.push_back(rank_of(member));
    const double factor = this->factor(ranks.front(), number);
    Connection connection = connection_of(cost, std::move(ranks));
    connection.limit = connection.limit / factor;
    known = program_.connect(std::move(connection));
    FoldedPath& path = program_.folded.emplace_back(path_of(cost));
    path.crossings = group.crossings;
    path.stands_for = group.stands_for;
    path.latency = longer(path.latency, factor);
    path.gap = longer(path.gap, factor);
    return known;
  }

  // The connection of whole messages becomes that of their flows.
  ConnectionId of_message(const Communication& what, std::uint32_t number_of_group,
                          std::uint64_t number, OpId id) {
    const ConnectionId whole = program_.transfer(program_[id]).connection;
    const bool is_new = !is_flow_[index(whole)];
    if (!is_new && !imperfections_.perturbs_exchanges()) return whole;
    is_flow_[index(whole)] = true;
    const FoldedRanks::Group& group = folded_.traffic[what.traffic].groups[number_of_group];
    const MessagePath path =
        network_.path(handovers_[what.traffic - plan_.uses.size()], group.entry);
    Connection connection{.source = rank_of(group.representatives[0]),
                          .target = rank_of(group.representatives[1])};
    const Bytes wire{what.size.count() / LoadedLink::whole};
    const Seconds moving = what.size / path.rate;
    const double factor = this->factor(connection.source, number);
    Time latency = path.latency;
    if (wire == Bytes{0}) latency += Time::round(moving);
    if (wire > Bytes{0}) connection.limit = wire / moving / factor;
    const FoldedPath folded{group.crossings, longer(latency, factor), group.stands_for};
    if (is_new) {
      program_.set_connection(whole, std::move(connection));
      program_.folded[index(whole)] = folded;
      return whole;
    }
    program_.folded.push_back(folded);
    return program_.connect(std::move(connection));
  }

  Program& program_;
  const StepPlan& plan_;
  StepNetwork& network_;
  const FoldedRanks& folded_;
  const Imperfections& imperfections_;
  std::vector<StepNetwork::Handover> handovers_;
  std::vector<std::uint64_t> exchanges_;                // so far, by pipeline rank
  std::vector<std::vector<ConnectionId>> connections_;  // by use, by group
  std::vector<const GroupFamily::Use*> costs_;          // of the uses
  std::vector<bool> is_flow_;                           // by connection of whole messages
};

/// By use.
std::vector<bool> pipelined(const CollectiveUses& uses, StepNetwork& network) {
  std::vector<bool> result;
  for (const CollectiveUse& use : uses) {
    const std::vector<GroupFamily::Use::Entry>& entries = network.use(use).entries;
    result.push_back(std::any_of(entries.begin(), entries.end(),
                                 [](const auto& entry) { return entry.cost.is_pipelined; }));
  }
  return result;
}

}  // namespace

void make_flows(StepProgram& step, const StepPlan& plan, StepNetwork& network,
                const FoldedRanks& folded, const Imperfections& imperfections) {
  Flows flows(step, plan, network, folded, imperfections);
  for (const Communication& what : step.communications) flows.run(what);
  flows.finish();
}

bool needs_transfers(const StepProgram& step, const StepPlan& plan, StepNetwork& network,
                     const FoldedRanks& folded) {
  for (const FoldedRanks::GroupSet& set : folded.traffic)
    for (const FoldedRanks::Group& group : set.groups)
      if (group.meets_others || group.lanes_met != 0) return true;
  if (accelerator_of(network.topology()).communication_share <= 0) return false;
  const std::vector<bool> is_pipelined = pipelined(plan.uses, network);
  if (std::find(is_pipelined.begin(), is_pipelined.end(), true) == is_pipelined.end()) return false;
  for (const StageWork& work : plan.works)
    for (const Tape* tape : tapes_of(work))
      for (const TapeStep& tape_step : tape->steps)
        if (tape_step.beside > 0 && is_pipelined[tape_step.use]) return true;
  return std::any_of(step.communications.begin(), step.communications.end(),
                     [&](const Communication& what) {
                       return !what.is_at_rest && what.traffic < plan.uses.size() &&
                              StepNetwork::lane_of(plan.uses[what.traffic]) != Lane::layer &&
                              is_pipelined[what.traffic];
                     });
}

}  // namespace rehearse
