// Max-min sharing, solved incrementally, against the plainest solver there is: water that rises
// over all flows at once, begun anew after every change.
#include "sim/engine/flow.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/support/random_program.hpp"

namespace rehearse::flow_test {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double close = 1e-9;  // relative

struct Live {
  std::vector<FlowNetwork::Crossing> crossings;  // the network keeps a view of them
  double limit = infinite;
  double left = 0;  // of its amount, by our own account
  FlowId id{};
  FlowNetwork::Finish finish;
  double rate = 0;  // what the brute force says
};
using Flows = std::vector<std::unique_ptr<Live>>;

bool crosses(const Live& flow, std::uint32_t resource) {
  return std::any_of(flow.crossings.begin(), flow.crossings.end(),
                     [&](const auto& crossing) { return crossing.resource == resource; });
}

double weight_on(const Live& flow, std::uint32_t resource) {
  double weight = 0;
  for (const auto& crossing : flow.crossings)
    if (crossing.resource == resource) weight += crossing.weight;
  return weight;
}

/// All rates rise together; whoever meets a full resource or its own limit stays there.
void fill_by_brute_force(const std::vector<double>& capacities, const Flows& flows) {
  std::vector<Live*> rising;
  for (const auto& flow : flows) rising.push_back(flow.get());
  for (Live* flow : rising) flow->rate = -1;
  while (!rising.empty()) {
    double level = infinite;
    std::vector<double> share(capacities.size(), infinite);
    for (std::uint32_t r = 0; r < capacities.size(); ++r) {
      double taken = 0, weight = 0;
      for (const auto& flow : flows)
        (flow->rate < 0 ? weight : taken) += weight_on(*flow, r) * std::abs(flow->rate);
      if (weight > 0) share[r] = (capacities[r] - taken) / weight;
      level = std::min(level, share[r]);
    }
    for (const Live* flow : rising) level = std::min(level, flow->limit);
    ASSERT_GT(level, 0);
    ASSERT_LT(level, infinite);
    const auto stays = [&](const Live* flow) {
      if (flow->limit <= level * (1 + 1e-12)) return true;
      for (const auto& crossing : flow->crossings)
        if (share[crossing.resource] <= level * (1 + 1e-12)) return true;
      return false;
    };
    const auto middle = std::stable_partition(rising.begin(), rising.end(),
                                              [&](const Live* flow) { return !stays(flow); });
    for (auto flow = middle; flow != rising.end(); ++flow) (*flow)->rate = level;
    rising.erase(middle, rising.end());
  }
}

/// A network with its flows, both kept up to date.
class Scene {
 public:
  Scene(Draw& draw, std::size_t resources)
      : draw_{draw}, capacities_(resources), network_{drawn(capacities_), longest} {}

  void start() {
    auto flow = std::make_unique<Live>();
    flow->crossings = random_crossings();
    if (draw_.once_in(3)) flow->limit = draw_.of<double>({1e8, 3e9, 1e10, 2.5e10});
    flow->left = draw_.of<double>({1e12, 3.3e12, 7e13});
    flow->id = network_.start(tag_++, flow->left, flow->limit, flow->crossings, now_);
    flows_.push_back(std::move(flow));
  }

  void end_one() {
    if (flows_.empty()) return;
    const auto at = flows_.begin() + static_cast<std::ptrdiff_t>(draw_.below(flows_.size()));
    if ((*at)->finish.version == 0) return;  // it was given no rate and no finish yet
    end(**at);
    flows_.erase(at);
  }

  void pass(Time time) {
    now_ += time;
    for (const auto& flow : flows_) flow->left -= flow->rate * time.seconds().count();
  }

  void solve() {
    std::vector<FlowNetwork::Finish> finishes;
    network_.solve(now_, finishes);
    ASSERT_FALSE(network_.has_changes());
    for (const FlowNetwork::Finish& finish : finishes) {
      const auto flow = std::find_if(flows_.begin(), flows_.end(),
                                     [&](const auto& one) { return one->id == finish.flow; });
      ASSERT_NE(flow, flows_.end()) << "a finish for a flow that has ended";
      (*flow)->finish = finish;
    }
    fill_by_brute_force(capacities_, flows_);
  }

  void check() const {
    for (std::uint32_t r = 0; r < capacities_.size(); ++r)
      ASSERT_LE(load(r), capacities_[r] * (1 + close)) << "resource " << r;
    for (const auto& flow : flows_) {
      const double rate = network_.rate(flow->id);
      ASSERT_NEAR(rate, flow->rate, close * flow->rate);
      ASSERT_TRUE(has_bottleneck(*flow)) << "rate " << rate;
      const double end = now_.seconds().count() + flow->left / rate;
      ASSERT_NEAR(flow->finish.time.seconds().count(), end, close * end + 2e-12);
    }
  }

  std::size_t live() const { return flows_.size(); }

 private:
  static constexpr std::size_t longest = 6;

  const std::vector<double>& drawn(std::vector<double>& capacities) {
    for (double& capacity : capacities)
      capacity = draw_.once_in(3) ? 1e9 * static_cast<double>(draw_.between(1, 1000))
                                  : draw_.of<double>({1e9, 12.5e9, 25e9, 25e9, 50e9, 450e9});
    return capacities;
  }

  // Often a resource and the one after it: a change then travels along the row.
  std::vector<FlowNetwork::Crossing> random_crossings() {
    std::vector<FlowNetwork::Crossing> crossings;
    const auto first = static_cast<std::uint32_t>(draw_.below(capacities_.size()));
    const bool neighbours = draw_.once_in(2);
    const std::size_t count = draw_.between(1, std::min(longest, capacities_.size()));
    for (std::size_t i = 0; i < count; ++i) {
      const auto resource = static_cast<std::uint32_t>(
          neighbours ? (first + i) % capacities_.size() : draw_.below(capacities_.size()));
      const bool seen = std::any_of(crossings.begin(), crossings.end(),
                                    [&](const auto& one) { return one.resource == resource; });
      if (seen) continue;
      const std::size_t weight = draw_.once_in(2) ? 1 : draw_.between(1, 8);
      crossings.push_back({resource, static_cast<std::uint32_t>(weight)});
    }
    return crossings;
  }

  double load(std::uint32_t resource) const {
    double load = 0;
    for (const auto& flow : flows_) load += weight_on(*flow, resource) * network_.rate(flow->id);
    return load;
  }

  bool holds(std::uint32_t resource, const Live& flow) const {
    if (!crosses(flow, resource)) return false;
    if (load(resource) < capacities_[resource] * (1 - close)) return false;
    return std::all_of(flows_.begin(), flows_.end(), [&](const auto& other) {
      return !crosses(*other, resource) ||
             network_.rate(other->id) <= network_.rate(flow.id) * (1 + close);
    });
  }

  bool at_limit(const Live& flow) const {
    return network_.rate(flow.id) >= flow.limit * (1 - close);
  }

  bool has_bottleneck(const Live& flow) const {
    return at_limit(flow) ||
           std::any_of(flow.crossings.begin(), flow.crossings.end(),
                       [&](const auto& crossing) { return holds(crossing.resource, flow); });
  }

  /// What the network says held the flow back must have done so, as long as nothing changed.
  void end(const Live& flow) {
    const bool settled = !network_.has_changes(), limited = at_limit(flow);
    std::vector<std::uint32_t> holders;
    for (const auto& crossing : flow.crossings)
      if (holds(crossing.resource, flow)) holders.push_back(crossing.resource);
    FlowNetwork::Ended ended;
    ASSERT_FALSE(network_.end(flow.id, flow.finish.version - 1, ended)) << "overtaken";
    ASSERT_TRUE(network_.end(flow.id, flow.finish.version, ended));
    ASSERT_FALSE(network_.end(flow.id, flow.finish.version, ended)) << "ended before";
    if (!settled) return;
    if (ended.held_by == FlowNetwork::own_limit) {
      ASSERT_TRUE(limited);
    } else {
      ASSERT_NE(std::find(holders.begin(), holders.end(), ended.held_by), holders.end());
    }
  }

  Draw& draw_;
  std::vector<double> capacities_;
  FlowNetwork network_;
  Flows flows_;
  Time now_;
  std::uint32_t tag_ = 0;
};

TEST(MaxMin, EqualsTheBruteForceOnRandomNetworks) {
  std::size_t most = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    Scene scene(draw, draw.between(1, draw.once_in(4) ? 40 : 10));
    for (std::size_t step = 0; step < 30; ++step) {
      for (std::size_t i = step % 5 == 0 ? 0 : draw.below(4); i > 0; --i) scene.end_one();
      for (std::size_t i = draw.between(step == 0 ? 1 : 0, 4); i > 0; --i) scene.start();
      scene.solve();
      if (HasFatalFailure()) return;
      scene.check();
      if (HasFatalFailure()) return;
      scene.pass(Time::picoseconds(static_cast<std::int64_t>(draw.below(1'000'000))));
      most = std::max(most, scene.live());
    }
  }
  EXPECT_GE(most, 40u) << "networks that matter have many flows";
}

/// `copies` like flows of weight one each, or one of that weight, at the same rates to the last
/// bit: folding relies on it.
TEST(MaxMin, AFlowOfWeightKIsKFlows) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    std::vector<double> capacities(draw.between(1, 8));
    for (double& capacity : capacities) capacity = draw.of<double>({1e9, 7e9, 12.5e9, 25e9});
    FlowNetwork whole(capacities, 8), folded(capacities, 8);
    std::vector<std::unique_ptr<std::vector<FlowNetwork::Crossing>>> kept;
    std::vector<std::pair<FlowId, FlowId>> twins;
    std::vector<FlowNetwork::Finish> finishes;
    for (std::size_t kinds = draw.between(1, 12); kinds > 0; --kinds) {
      const std::size_t copies = draw.between(1, 9);
      auto& one = *kept.emplace_back(std::make_unique<std::vector<FlowNetwork::Crossing>>());
      auto& many = *kept.emplace_back(std::make_unique<std::vector<FlowNetwork::Crossing>>());
      for (std::uint32_t r = 0; r < capacities.size(); ++r) {
        if (!draw.once_in(2) && r + 1 < capacities.size()) continue;
        one.push_back({r, 1});
        many.push_back({r, static_cast<std::uint32_t>(copies)});
      }
      const double limit = draw.once_in(3) ? draw.of<double>({2e8, 1e9, 6e9}) : infinite;
      const FlowId alone = folded.start(0, 1e6, limit, many, {});
      for (std::size_t i = 0; i < copies; ++i)
        twins.emplace_back(whole.start(0, 1e6, limit, one, {}), alone);
      if (draw.once_in(2)) continue;
      whole.solve({}, finishes);
      folded.solve({}, finishes);
    }
    whole.solve({}, finishes);
    folded.solve({}, finishes);
    for (const auto& [one, many] : twins) ASSERT_EQ(whole.rate(one), folded.rate(many));
  }
}

}  // namespace
}  // namespace rehearse::flow_test
