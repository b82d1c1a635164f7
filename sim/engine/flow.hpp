// Max-min fair sharing: live flows on limited resources (links, compute units).
//
// Water-filling (Bertsekas and Gallager, Data Networks, 6.5.2): all rates rise together until a
// resource is full or a flow reaches its own limit; those flows are frozen, the rest rise on. A
// change is solved again only as far as it reaches: see flow.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"

namespace rehearse {

enum class FlowId : std::uint32_t {};  // a slot, used again after the flow has ended

class FlowNetwork {
 public:
  /// A flow's use of a resource: `weight` flows alike cross it together (1 when nothing is folded).
  struct Crossing {
    std::uint32_t resource = 0;
    std::uint32_t weight = 1;
  };
  /// What a flow is held back by, when it is no resource.
  static constexpr std::uint32_t own_limit = UINT32_MAX;

  /// Which finishes solve() tells: all that have changed; or, on a resource that is the only one
  /// of all its flows, just the next, since its end changes all the others.
  enum class Tells : std::uint8_t { all, next };

  /// `longest` is the greatest number of crossings a flow will have.
  FlowNetwork(const std::vector<double>& capacities, std::size_t longest, Tells tells = Tells::all);

  /// Adds a flow of `amount` (bytes, or seconds of compute) that `crossings`, which must stay where
  /// they are, and its own `limit` hold back. It moves once solve() has been called.
  FlowId start(std::uint32_t tag, double amount, double limit, std::span<const Crossing> crossings,
               Time now);

  /// When a flow ends if nothing changes; a later solve() may overtake it.
  struct Finish {
    FlowId flow{};
    std::uint32_t version = 0;  // 3 or more
    Time time;
  };
  bool has_changes() const { return !dirty_.empty(); }
  /// Gives every flow that the changes since the last call reach its max-min fair rate, and adds
  /// the finishes that have changed.
  void solve(Time now, std::vector<Finish>& finishes);

  struct Ended {
    std::uint32_t tag = 0;
    std::uint32_t held_by = own_limit;
  };
  /// Ends the flow, unless the finish was overtaken.
  bool end(FlowId flow, std::uint32_t version, Ended& ended);

  double rate(FlowId flow) const { return flows_[index(flow)].rate; }

 private:
  struct Flow {
    std::span<const Crossing> crossings;
    double amount = 0;           // left at `anchor`
    double rate = 0, limit = 0;  // a new flow has no rate yet
    double next_rate = 0;
    Time anchor;
    std::uint32_t tag = 0;
    std::uint32_t held_by = own_limit, next_held_by = own_limit;
    std::uint32_t version = 1;  // of its finish; counts on when the slot is used again
    std::uint32_t told = 0;     // version of the finish that was told last
    std::uint32_t varies = 0;   // epoch of the solve() that finds it a new rate
    std::uint32_t seen = 0;     // epoch of the fill() that knows it
    bool frozen = false;
  };
  struct Visitor {  // one flow on one resource
    std::uint32_t flow = 0;
    std::uint32_t crossing = 0;  // its index in the flow's crossings
  };
  struct Resource {
    double capacity = 0, left = 0;
    std::uint64_t weight = 0;    // of all visitors
    std::uint64_t rising = 0;    // of those not frozen yet
    std::uint64_t freezing = 0;  // of those that freeze at this level
    std::uint32_t seen = 0;      // epoch of the fill() that involves it
    std::uint32_t abroad = 0;    // visitors that cross other resources too
    bool dirty = false;          // a visitor came or went since the last solve()
    bool is_quiet = false;       // not all finishes of its visitors have been told
    std::vector<Visitor> visitors;
  };
  struct Share {  // what a resource can still give each of its rising flows
    double level = 0;
    std::uint32_t resource = 0;
  };
  struct Step {  // a level at which a flow freezes by itself: its limit, or the rate it keeps
    double level = 0;
    std::uint32_t flow = 0;
  };

  bool varies(std::uint32_t flow) const { return flows_[flow].varies == solves_; }
  void vary(std::uint32_t flow);
  void mark(std::uint32_t resource);
  void fill();
  void involve(std::uint32_t resource);
  void rise_to(double level, std::size_t& next_step);
  void keep_rate(std::uint32_t flow);
  void fill_up(std::uint32_t resource, double level);
  void freeze(std::uint32_t flow, double level, std::uint32_t held_by);
  void settle_level(double level);
  double lowest_share();
  double share(const Resource& resource) const;
  void settle_alone();
  bool settle_at_home(std::uint32_t resource, Time now, std::vector<Finish>& finishes);
  static void move(Flow& flow, double rate, Time now);
  static Time finish(const Flow& flow);
  void tell(std::uint32_t flow, std::vector<Finish>& finishes);
  void apply(std::span<const std::uint32_t> flows, Time now, std::vector<Finish>& finishes);
  std::uint32_t& position(std::uint32_t flow, std::size_t crossing) {
    return positions_[flow * stride_ + crossing];
  }

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  std::vector<std::uint32_t> positions_;  // of each flow's crossings among the visitors
  std::size_t stride_;
  Tells tells_;
  std::vector<std::uint32_t> dirty_;  // resources, each once
  std::uint32_t solves_ = 0, fills_ = 0;

  // What is being solved; members only to keep their memory.
  std::vector<std::uint32_t> alone_, varying_, involved_, promoted_, touched_, quiet_;
  std::vector<Step> steps_;
  std::vector<Share> shares_;  // a heap, lowest first; entries may be out of date (too low)
};

}  // namespace rehearse
