// Water-filling on the connected part of the network that a change reaches.
//
// At every level the flows that freeze are counted per resource, and `count * level` is taken away
// at once. So a resource that eight like flows cross and one that a folded flow of weight eight
// crosses go through the very same arithmetic: the folded answer equals the unfolded one exactly.
#include "sim/flow.hpp"

#include <algorithm>
#include <limits>

namespace rehearse {

namespace {

// Levels closer than this are one level: mathematically equal shares may differ in the last bit.
constexpr double same_level = 1 + 1e-12;
constexpr double infinite = std::numeric_limits<double>::infinity();

constexpr auto higher = [](const auto& a, const auto& b) {
  return a.level != b.level ? a.level > b.level : a.resource > b.resource;
};

}  // namespace

FlowNetwork::FlowNetwork(const std::vector<double>& capacities, std::size_t longest)
    : resources_(capacities.size()), stride_{std::max<std::size_t>(longest, 1)} {
  for (std::size_t r = 0; r < capacities.size(); ++r) resources_[r].capacity = capacities[r];
}

FlowId FlowNetwork::start(std::uint32_t tag, double amount, double limit,
                          std::span<const Crossing> crossings, Time now) {
  ASSERT(amount > 0 && limit > 0 && !crossings.empty() && crossings.size() <= stride_);
  std::uint32_t id;
  if (free_flows_.empty()) {
    id = static_cast<std::uint32_t>(flows_.size());
    flows_.emplace_back();
    positions_.resize(flows_.size() * stride_);
  } else {
    id = free_flows_.back();
    free_flows_.pop_back();
    flows_[id] = Flow{};
  }
  Flow& flow = flows_[id];
  flow.crossings = crossings;
  flow.amount = amount;
  flow.limit = limit;
  flow.anchor = now;
  flow.tag = tag;
  for (std::uint32_t k = 0; k < crossings.size(); ++k) {
    Resource& resource = resources_[crossings[k].resource];
    position(id, k) = static_cast<std::uint32_t>(resource.visitors.size());
    resource.visitors.push_back({id, k});
    dirty_.push_back(crossings[k].resource);
  }
  return static_cast<FlowId>(id);
}

void FlowNetwork::remove(std::uint32_t id) {
  const Flow& flow = flows_[id];
  for (std::size_t k = 0; k < flow.crossings.size(); ++k) {
    Resource& resource = resources_[flow.crossings[k].resource];
    const Visitor last = resource.visitors.back();
    resource.visitors[position(id, k)] = last;
    position(last.flow, last.crossing) = position(id, k);
    resource.visitors.pop_back();
    if (!resource.visitors.empty()) dirty_.push_back(flow.crossings[k].resource);
  }
  free_flows_.push_back(id);
}

void FlowNetwork::solve(Time now, std::vector<Alarm>& alarms) {
  ++epoch_;
  for (const std::uint32_t seed : dirty_) {
    if (resources_[seed].seen == epoch_ || resources_[seed].visitors.empty()) continue;
    gather(seed);
    fill();
    apply(now, alarms);
  }
  dirty_.clear();
}

// Breadth first: resources lead to their visitors, visitors to their other resources.
void FlowNetwork::gather(std::uint32_t seed) {
  part_flows_.clear();
  part_resources_.assign(1, seed);
  resources_[seed].seen = epoch_;
  for (std::size_t next = 0; next < part_resources_.size(); ++next) {
    Resource& resource = resources_[part_resources_[next]];
    resource.left = resource.capacity;
    resource.rising = 0;
    resource.freezing = 0;
    for (const Visitor visitor : resource.visitors) {
      Flow& flow = flows_[visitor.flow];
      resource.rising += flow.crossings[visitor.crossing].weight;
      if (flow.seen == epoch_) continue;
      flow.seen = epoch_;
      flow.frozen = false;
      part_flows_.push_back(visitor.flow);
      for (const Crossing& crossing : flow.crossings) {
        if (resources_[crossing.resource].seen == epoch_) continue;
        resources_[crossing.resource].seen = epoch_;
        part_resources_.push_back(crossing.resource);
      }
    }
  }
  solved_flows_ += part_flows_.size();
}

void FlowNetwork::fill() {
  shares_.clear();
  for (const std::uint32_t r : part_resources_)
    shares_.push_back({resources_[r].left / static_cast<double>(resources_[r].rising), r});
  std::make_heap(shares_.begin(), shares_.end(), higher);
  limited_.clear();
  for (const std::uint32_t f : part_flows_)
    if (flows_[f].limit < infinite) limited_.push_back(f);
  std::sort(limited_.begin(), limited_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return flows_[a].limit != flows_[b].limit ? flows_[a].limit < flows_[b].limit : a < b;
  });

  rising_flows_ = part_flows_.size();
  std::size_t next = 0;
  while (rising_flows_ > 0) {
    while (next < limited_.size() && flows_[limited_[next]].frozen) ++next;
    const double limit = next < limited_.size() ? flows_[limited_[next]].limit : infinite;
    const double level = std::min(lowest_share(), limit);
    ASSERT(level > 0 && level < infinite);
    for (; next < limited_.size() && flows_[limited_[next]].limit <= level * same_level; ++next)
      freeze(limited_[next], level, own_limit);
    while (lowest_share() <= level * same_level) {
      const std::uint32_t full = shares_.front().resource;
      std::pop_heap(shares_.begin(), shares_.end(), higher);
      shares_.pop_back();
      for (const Visitor visitor : resources_[full].visitors) freeze(visitor.flow, level, full);
    }
    settle_level(level);
  }
}

// Shares only rise while the water does, so an entry that is out of date is too low: it is put back
// with its present share until the lowest one is true.
double FlowNetwork::lowest_share() {
  while (!shares_.empty()) {
    const Share lowest = shares_.front();
    const Resource& resource = resources_[lowest.resource];
    const double level =
        resource.rising == 0 ? infinite : resource.left / static_cast<double>(resource.rising);
    if (level <= lowest.level) return lowest.level;
    std::pop_heap(shares_.begin(), shares_.end(), higher);
    shares_.pop_back();
    if (level == infinite) continue;
    shares_.push_back({level, lowest.resource});
    std::push_heap(shares_.begin(), shares_.end(), higher);
  }
  return infinite;
}

void FlowNetwork::freeze(std::uint32_t id, double level, std::uint32_t held_by) {
  Flow& flow = flows_[id];
  if (flow.frozen) return;
  flow.frozen = true;
  flow.next_rate = level;
  flow.held_by = held_by;
  --rising_flows_;
  for (const Crossing& crossing : flow.crossings) {
    Resource& resource = resources_[crossing.resource];
    if (resource.freezing == 0) touched_.push_back(crossing.resource);
    resource.freezing += crossing.weight;
  }
}

void FlowNetwork::settle_level(double level) {
  for (const std::uint32_t r : touched_) {
    Resource& resource = resources_[r];
    resource.left = std::max(0.0, resource.left - static_cast<double>(resource.freezing) * level);
    resource.rising -= resource.freezing;
    resource.freezing = 0;
  }
  touched_.clear();
}

void FlowNetwork::apply(Time now, std::vector<Alarm>& alarms) {
  const AlarmId id = new_alarm();
  Time earliest = Time::never();
  std::vector<std::uint32_t>& ending = alarms_[index(id)].flows;
  for (const std::uint32_t f : part_flows_) {
    Flow& flow = flows_[f];
    if (flow.alarm_serial != 0 && alarms_[flow.alarm].serial == flow.alarm_serial)
      alarms_[flow.alarm].valid = false;
    flow.alarm = static_cast<std::uint32_t>(index(id));
    flow.alarm_serial = last_serial_;
    if (flow.next_rate != flow.rate) {
      flow.amount = std::max(0.0, flow.amount - flow.rate * (now - flow.anchor).seconds().count());
      flow.anchor = now;
      flow.rate = flow.next_rate;
      flow.finish = now + Time::round(Seconds{flow.amount / flow.rate});
    }
    if (flow.finish < earliest) earliest = flow.finish, ending.clear();
    if (flow.finish == earliest) ending.push_back(f);
  }
  alarms_[index(id)].valid = true;
  alarms.push_back({id, earliest});
}

AlarmId FlowNetwork::new_alarm() {
  if (free_alarms_.empty()) {
    free_alarms_.push_back(static_cast<std::uint32_t>(alarms_.size()));
    alarms_.emplace_back();
  }
  const std::uint32_t id = free_alarms_.back();
  free_alarms_.pop_back();
  alarms_[id].flows.clear();
  alarms_[id].serial = ++last_serial_;
  return static_cast<AlarmId>(id);
}

void FlowNetwork::ring(AlarmId id, std::vector<Ended>& ended) {
  AlarmSlot& alarm = alarms_[index(id)];
  if (alarm.valid) {
    alarm.valid = false;
    for (const std::uint32_t f : alarm.flows) {
      ended.push_back({flows_[f].tag, flows_[f].held_by});
      remove(f);
    }
  }
  free_alarms_.push_back(static_cast<std::uint32_t>(index(id)));
}

}  // namespace rehearse
