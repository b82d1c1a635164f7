// Max-min fair sharing: live flows on limited resources (links, compute units).
//
// Water-filling (Bertsekas and Gallager, Data Networks, 6.5.2): all rates rise together until a
// resource is full or a flow reaches its own limit; those flows are frozen, the rest rise on.
// A change is solved again only in the part of the network it is connected to, once per instant.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/ids.hpp"
#include "sim/units.hpp"

namespace rehearse {

enum class FlowId : std::uint32_t {};   // a slot, used again after the flow has ended
enum class AlarmId : std::uint32_t {};  // "somebody of this part finishes": a slot likewise

class FlowNetwork {
 public:
  /// A flow's use of a resource: `weight` flows alike cross it together (1 when nothing is folded).
  struct Crossing {
    std::uint32_t resource = 0;
    std::uint32_t weight = 1;
  };
  struct Alarm {
    AlarmId id{};
    Time time;
  };
  /// What a flow was held back by when it was last given a rate.
  static constexpr std::uint32_t own_limit = UINT32_MAX;

  /// `longest` is the greatest number of crossings a flow will have.
  FlowNetwork(const std::vector<double>& capacities, std::size_t longest);

  /// Adds a flow of `amount` (bytes, or seconds of compute) that `crossings`, which must stay where
  /// they are, and its own `limit` hold back. It moves once solve() has been called.
  FlowId start(std::uint32_t tag, double amount, double limit, std::span<const Crossing> crossings,
               Time now);

  bool has_changes() const { return !dirty_.empty(); }
  /// Gives every flow that the changes since the last call reach its max-min fair rate. For each
  /// connected part an alarm is put into `alarms`: the earliest end of one of its flows.
  void solve(Time now, std::vector<Alarm>& alarms);

  /// Ends the flows for which the alarm rang, and puts them into `ended`; none when the alarm was
  /// overtaken by a later solve().
  struct Ended {
    std::uint32_t tag = 0;
    std::uint32_t held_by = own_limit;
  };
  void ring(AlarmId alarm, std::vector<Ended>& ended);

  double rate(FlowId flow) const { return flows_[index(flow)].rate; }
  std::uint64_t solved_flows() const { return solved_flows_; }

 private:
  struct Flow {
    std::span<const Crossing> crossings;
    double amount = 0;  // left at `anchor`
    double rate = 0, limit = 0, next_rate = 0;
    Time anchor, finish;
    std::uint32_t tag = 0;
    std::uint32_t held_by = own_limit;
    std::uint32_t alarm = 0;         // slot and
    std::uint64_t alarm_serial = 0;  // serial: the slot may serve another part by now
    std::uint32_t seen = 0;          // epoch of the solve that reached it
    bool frozen = false;
  };
  struct Visitor {  // one flow on one resource
    std::uint32_t flow = 0;
    std::uint32_t crossing = 0;  // its index in the flow's crossings
  };
  struct Resource {
    double capacity = 0, left = 0;
    std::uint32_t seen = 0;
    std::uint64_t rising = 0;    // weight of the flows not frozen yet
    std::uint64_t freezing = 0;  // weight of those that freeze at this level
    std::vector<Visitor> visitors;
  };
  struct AlarmSlot {
    std::vector<std::uint32_t> flows;  // that end when it rings
    std::uint64_t serial = 0;
    bool valid = false;
  };

  struct Share {  // what a resource can still give each of its rising flows
    double level = 0;
    std::uint32_t resource = 0;
  };

  void gather(std::uint32_t seed);
  void fill();
  double lowest_share();
  void freeze(std::uint32_t flow, double level, std::uint32_t held_by);
  void settle_level(double level);
  void apply(Time now, std::vector<Alarm>& alarms);
  AlarmId new_alarm();
  void remove(std::uint32_t flow);
  std::uint32_t& position(std::uint32_t flow, std::size_t crossing) {
    return positions_[flow * stride_ + crossing];
  }

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  std::vector<std::uint32_t> positions_;  // of each flow's crossings among the visitors
  std::size_t stride_;
  std::vector<std::uint32_t> dirty_;
  std::vector<AlarmSlot> alarms_;
  std::vector<std::uint32_t> free_alarms_;
  std::uint64_t last_serial_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint64_t solved_flows_ = 0;

  // The connected part that is being solved; members only to keep their memory.
  std::vector<std::uint32_t> part_flows_, part_resources_, limited_, touched_;
  std::vector<Share> shares_;  // a heap, lowest first; entries may be out of date (too low)
  std::size_t rising_flows_ = 0;
};

}  // namespace rehearse
