// Max-min fairness, solved again only as far as a change reaches.
//
// Rates are max-min fair exactly when every flow has a bottleneck: a resource that is full and on
// which nobody is faster (or its own limit). So after a change only the new flows and those held by
// a changed resource are varied; all others keep their rates, and the water rises past them. If one
// of those would then be too fast for a resource that fills up below its rate, or has lost its
// bottleneck, it is varied too, and the water rises again, until nobody objects.
//
// Whoever keeps a rate freezes at it like everybody else, and what freezes at one level is taken
// off a resource at once, as count * level. So the arithmetic on a resource is the same whether a
// flow was varied or kept, and whether eight like flows cross it or one folded flow of weight
// eight: the folded answer equals the unfolded one exactly.
#include "sim/engine/flow.hpp"

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

FlowNetwork::FlowNetwork(const std::vector<double>& capacities, std::size_t longest, Tells tells)
    : resources_(capacities.size()), stride_{std::max<std::size_t>(longest, 1)}, tells_{tells} {
  for (std::size_t r = 0; r < capacities.size(); ++r) resources_[r].capacity = capacities[r];
}

FlowId FlowNetwork::start(std::uint32_t tag, double amount, double limit,
                          std::span<const Crossing> crossings, Time now) {
  ASSERT(amount > 0 && limit > 0 && !crossings.empty() && crossings.size() <= stride_);
  if (free_flows_.empty()) {
    free_flows_.push_back(static_cast<std::uint32_t>(flows_.size()));
    flows_.emplace_back();
    positions_.resize(flows_.size() * stride_);
  }
  const std::uint32_t id = free_flows_.back();
  free_flows_.pop_back();
  const std::uint32_t version = flows_[id].version + 1;
  Flow& flow = flows_[id] = Flow{};
  flow.crossings = crossings;
  flow.amount = amount;
  flow.limit = limit;
  flow.anchor = now;
  flow.tag = tag;
  flow.version = version;
  for (std::uint32_t k = 0; k < crossings.size(); ++k) {
    Resource& resource = resources_[crossings[k].resource];
    position(id, k) = static_cast<std::uint32_t>(resource.visitors.size());
    resource.visitors.push_back({id, k});
    resource.weight += crossings[k].weight;
    resource.abroad += crossings.size() > 1;
    mark(crossings[k].resource);
  }
  return static_cast<FlowId>(id);
}

void FlowNetwork::mark(std::uint32_t id) {
  if (resources_[id].dirty) return;
  resources_[id].dirty = true;
  dirty_.push_back(id);
}

bool FlowNetwork::end(FlowId id, std::uint32_t version, Ended& ended) {
  const auto slot = static_cast<std::uint32_t>(index(id));
  Flow& flow = flows_[slot];
  if (flow.version != version) return false;
  ended = {flow.tag, flow.held_by};
  for (std::size_t k = 0; k < flow.crossings.size(); ++k) {
    Resource& resource = resources_[flow.crossings[k].resource];
    const Visitor last = resource.visitors.back();
    resource.visitors[position(slot, k)] = last;
    position(last.flow, last.crossing) = position(slot, k);
    resource.visitors.pop_back();
    resource.weight -= flow.crossings[k].weight;
    resource.abroad -= flow.crossings.size() > 1;
    if (!resource.visitors.empty()) mark(flow.crossings[k].resource);
  }
  ++flow.version;
  free_flows_.push_back(slot);
  return true;
}

void FlowNetwork::solve(Time now, std::vector<Finish>& finishes) {
  ++solves_;
  varying_.clear();
  quiet_.clear();
  for (const std::uint32_t r : dirty_) {
    resources_[r].dirty = false;
    if (settle_at_home(r, now, finishes)) continue;
    if (resources_[r].is_quiet) quiet_.push_back(r);
    for (const Visitor visitor : resources_[r].visitors)
      if (flows_[visitor.flow].rate == 0 || flows_[visitor.flow].held_by == r) vary(visitor.flow);
  }
  dirty_.clear();
  settle_alone();

  // Objections come in waves; a long row of them is cut short by varying everybody in reach.
  constexpr std::size_t patience = 6;
  for (std::size_t waves = 0; !varying_.empty(); ++waves) {
    fill();
    if (promoted_.empty()) break;
    for (const std::uint32_t f : promoted_) vary(f);
    if (waves < patience) continue;
    for (const std::uint32_t r : involved_)
      for (const Visitor visitor : resources_[r].visitors) vary(visitor.flow);
  }
  apply(alone_, now, finishes);
  apply(varying_, now, finishes);
  for (const std::uint32_t r : quiet_) {
    resources_[r].is_quiet = false;
    for (const Visitor visitor : resources_[r].visitors)
      if (flows_[visitor.flow].told != flows_[visitor.flow].version) tell(visitor.flow, finishes);
  }
}

// Where nobody crosses anything else and no limit is below an equal share, all have that: hundreds
// of workers that send to one server are settled in one pass, and only the next of them is told.
bool FlowNetwork::settle_at_home(std::uint32_t id, Time now, std::vector<Finish>& finishes) {
  Resource& resource = resources_[id];
  if (resource.abroad > 0) return false;
  const double level = resource.capacity / static_cast<double>(resource.weight);
  for (const Visitor visitor : resource.visitors)
    if (flows_[visitor.flow].limit <= level * same_level) return false;
  double least = infinite;  // that is left of any
  for (const Visitor visitor : resource.visitors) {
    Flow& flow = flows_[visitor.flow];
    flow.held_by = id;
    if (flow.rate != level) move(flow, level, now);
    // Who kept the rate has moved on since its anchor, by less than it then had left.
    const double since = (now - flow.anchor).seconds().count();
    least = std::min(least, flow.amount - flow.rate * since);
  }
  // Whoever ends in the same picosecond as the next one has at most that much more.
  const double soon = least + level * 3e-12 + least * 1e-9;
  Time next = Time::never();
  if (tells_ == Tells::next)
    for (const Visitor visitor : resource.visitors) {
      const Flow& flow = flows_[visitor.flow];
      if (flow.anchor != now || flow.amount <= soon) next = std::min(next, finish(flow));
    }
  for (const Visitor visitor : resource.visitors) {
    const Flow& flow = flows_[visitor.flow];
    if (flow.told == flow.version) continue;
    const bool is_far = flow.anchor == now && flow.amount > soon;
    if (tells_ == Tells::all || (!is_far && finish(flow) == next)) tell(visitor.flow, finishes);
  }
  resource.is_quiet = tells_ == Tells::next;
  return true;
}

// A flow that shares nothing needs no water: the narrowest of its resources and its limit tell.
void FlowNetwork::settle_alone() {
  alone_.clear();
  std::erase_if(varying_, [&](std::uint32_t f) {
    Flow& flow = flows_[f];
    double level = infinite;
    std::uint32_t narrowest = own_limit;
    for (const Crossing& crossing : flow.crossings) {
      const Resource& resource = resources_[crossing.resource];
      if (resource.visitors.size() > 1) return false;
      const double most = resource.capacity / static_cast<double>(resource.weight);
      if (most < level || (most == level && crossing.resource < narrowest))
        level = most, narrowest = crossing.resource;
    }
    level = std::min(level, flow.limit);
    flow.next_rate = level;
    flow.next_held_by = flow.limit <= level * same_level ? own_limit : narrowest;
    alone_.push_back(f);
    return true;
  });
}

void FlowNetwork::vary(std::uint32_t flow) {
  if (varies(flow)) return;
  flows_[flow].varies = solves_;
  varying_.push_back(flow);
}

void FlowNetwork::fill() {
  ++fills_;
  involved_.clear();
  steps_.clear();
  promoted_.clear();
  shares_.clear();
  for (const std::uint32_t f : varying_) {
    Flow& flow = flows_[f];
    flow.seen = fills_;
    flow.frozen = false;
    if (flow.limit < infinite) steps_.push_back({flow.limit, f});
    for (const Crossing& crossing : flow.crossings) involve(crossing.resource);
  }
  for (const std::uint32_t r : involved_) {
    shares_.push_back({share(resources_[r]), r});
    for (const Visitor visitor : resources_[r].visitors) {
      Flow& flow = flows_[visitor.flow];
      if (flow.seen == fills_) continue;
      flow.seen = fills_;
      flow.frozen = false;
      steps_.push_back({flow.rate, visitor.flow});
    }
  }
  std::make_heap(shares_.begin(), shares_.end(), higher);
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    return a.level != b.level ? a.level < b.level : a.flow < b.flow;
  });

  std::size_t next = 0;
  while (true) {
    const double step = next < steps_.size() ? steps_[next].level : infinite;
    const double level = std::min(lowest_share(), step);
    if (level == infinite) break;
    ASSERT(level > 0);
    rise_to(level, next);
  }
}

void FlowNetwork::involve(std::uint32_t id) {
  Resource& resource = resources_[id];
  if (resource.seen == fills_) return;
  resource.seen = fills_;
  resource.left = resource.capacity;
  resource.rising = resource.weight;
  resource.freezing = 0;
  involved_.push_back(id);
}

void FlowNetwork::rise_to(double level, std::size_t& next_step) {
  for (; next_step < steps_.size() && steps_[next_step].level <= level * same_level; ++next_step) {
    const std::uint32_t f = steps_[next_step].flow;
    if (flows_[f].frozen) continue;
    if (!varies(f)) keep_rate(f);
    freeze(f, level, own_limit);
  }
  while (lowest_share() <= level * same_level) {
    const std::uint32_t full = shares_.front().resource;
    std::pop_heap(shares_.begin(), shares_.end(), higher);
    shares_.pop_back();
    fill_up(full, level);
  }
  settle_level(level);
}

// Objects when what held the flow back does so no longer: it could be faster.
void FlowNetwork::keep_rate(std::uint32_t id) {
  const Flow& flow = flows_[id];
  if (flow.held_by == own_limit) return;
  const Resource& holder = resources_[flow.held_by];
  if (holder.seen == fills_ && share(holder) > flow.rate * same_level) promoted_.push_back(id);
}

// Objects for those that are faster than the resource allows.
void FlowNetwork::fill_up(std::uint32_t id, double level) {
  for (const Visitor visitor : resources_[id].visitors) {
    if (flows_[visitor.flow].frozen) continue;
    if (!varies(visitor.flow)) promoted_.push_back(visitor.flow);
    freeze(visitor.flow, level, id);
  }
}

double FlowNetwork::share(const Resource& resource) const {
  return resource.rising == 0 ? infinite : resource.left / static_cast<double>(resource.rising);
}

// Shares only rise while the water does, so an entry that is out of date is too low: it is put back
// with its present share until the lowest one is true.
double FlowNetwork::lowest_share() {
  while (!shares_.empty()) {
    const Share lowest = shares_.front();
    const double level = share(resources_[lowest.resource]);
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
  flow.frozen = true;
  flow.next_rate = level;
  flow.next_held_by = held_by;
  for (const Crossing& crossing : flow.crossings) {
    Resource& resource = resources_[crossing.resource];
    if (resource.seen != fills_) continue;
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

void FlowNetwork::apply(std::span<const std::uint32_t> flows, Time now,
                        std::vector<Finish>& finishes) {
  for (const std::uint32_t f : flows) {
    Flow& flow = flows_[f];
    flow.held_by = flow.next_held_by;
    if (flow.next_rate == flow.rate) continue;
    move(flow, flow.next_rate, now);
    tell(f, finishes);
  }
}

void FlowNetwork::move(Flow& flow, double rate, Time now) {
  flow.amount = std::max(0.0, flow.amount - flow.rate * (now - flow.anchor).seconds().count());
  flow.anchor = now;
  flow.rate = rate;
  ++flow.version;
}

Time FlowNetwork::finish(const Flow& flow) {
  return flow.anchor + Time::round(Seconds{flow.amount / flow.rate});
}

void FlowNetwork::tell(std::uint32_t f, std::vector<Finish>& finishes) {
  Flow& flow = flows_[f];
  flow.told = flow.version;
  finishes.push_back({static_cast<FlowId>(f), flow.version, finish(flow)});
}

}  // namespace rehearse
