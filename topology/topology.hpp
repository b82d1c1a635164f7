// The machine as plain data: devices, and directed links between them. Routes are another idea
// (topology/routing.hpp); so are files (topology/io_*.hpp) and shapes (topology/generators.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "topology/accelerator.hpp"

namespace rehearse {

enum class DeviceKind : std::uint8_t { gpu, nic, network_switch, cpu, memory };

struct Device {
  std::string name;  // unique: "node0/gpu3"
  DeviceKind kind = DeviceKind::gpu;
  NodeId node = no_node;
  std::uint16_t accelerator = 0;  // index into Topology::accelerators, gpu and cpu only
  bool reduces = false;           // a switch that can add what passes through (NVLS, SHARP)
  friend bool operator==(const Device&, const Device&) = default;
};

enum class LinkKind : std::uint8_t { nvlink, pcie, network, socket, memory, other };

/// One direction of one cable. Latency is on the clock already, so equal paths tie exactly. A cable
/// that has gone bad is slower by `worn` and `delay` than when routes were laid, and they stay.
/// Its bandwidth is what the machine's library reaches of the `rated` one of its data sheet.
struct Link {
  DeviceId source{}, target{};
  BytesPerSecond bandwidth;
  Time latency;
  LinkKind kind = LinkKind::other;
  double worn = 1;
  BytesPerSecond rated{};  // zero: the same
  Time delay;
  friend bool operator==(const Link&, const Link&) = default;
};

/// How messages of one kind travel: NCCL's LL, LL128 and Simple, or a plain one.
struct Protocol {
  std::string name = "simple";
  Time overhead;           // per message, added to its route's latency
  Time network_overhead;   // added to that where the route crosses a network
  Time launch;             // of a collective that speaks it, before its first message
  double payload = 1;      // share of the bytes on the wire that is the user's (LL: 0.5)
  BytesPerSecond limit{};  // of one channel; zero: none
  friend bool operator==(const Protocol&, const Protocol&) = default;
};

/// The library that ranks talk through: what it costs beside the links, and what of them it
/// reaches. It decides which algorithms `auto` may take (strategies/collectives/nccl_choice.hpp).
struct Library {
  std::string name;      // "nccl", "rccl"; empty: none, and any algorithm may be taken
  int version = 0;       // 2.23 is 223; 0: a recent one
  Time issue;            // of the host, to hand a collective to one GPU
  Time network_launch;   // of a collective that crosses a network: waking those who serve its NICs
  double in_switch = 1;  // share of a link's rate that a switch reaches while it adds and copies
  // What its channels carry through a switch that adds, each way: of ranks that all are behind that
  // switch, and of others, where NCCL takes more channels. Zero: any.
  BytesPerSecond switch_rate{}, far_switch_rate{};
  Bytes piece;  // what a pipeline's pieces are at least, over all channels; 0: any
  // A host hands on one message of a network at a time, as by a socket: what one costs beside its
  // bytes passes before the next begins.
  bool one_at_a_time = false;
  std::array<double, 6> efficiency{1, 1, 1, 1, 1, 1};  // of links, by LinkKind
  friend bool operator==(const Library&, const Library&) = default;
};

/// Devices and links, in the order they were added; ranks are the GPUs in that order, or the CPU
/// sockets where there is no GPU.
class Topology {
 public:
  std::string name;
  std::vector<Accelerator> accelerators;
  std::vector<Protocol> protocols;  // empty: one plain protocol without overhead
  Library library;

  DeviceId add(Device device);
  LinkId connect(Link link);
  /// Both directions of a cable; returns the forward one, the backward one follows it.
  LinkId connect_both(Link forward);

  std::span<const Device> devices() const { return devices_; }
  std::span<const Link> links() const { return links_; }
  const Device& operator[](DeviceId d) const { return devices_[index(d)]; }
  const Link& operator[](LinkId l) const { return links_[index(l)]; }
  /// Gives every link the share of its data sheet's rate that the library reaches.
  void apply_efficiency();

  std::size_t rank_count() const { return ranks().size(); }
  DeviceId device_of(Rank r) const { return ranks()[index(r)]; }
  std::span<const DeviceId> ranks() const { return gpus_.empty() ? cpus_ : gpus_; }
  std::size_t node_count() const { return node_count_; }

  friend bool operator==(const Topology&, const Topology&) = default;

 private:
  std::vector<Device> devices_;
  std::vector<Link> links_;
  std::vector<DeviceId> gpus_, cpus_;
  std::size_t node_count_ = 0;
};

/// What the data sheet says of it.
inline BytesPerSecond nameplate(const Link& link) {
  return link.rated.count() > 0 ? link.rated / link.worn : link.bandwidth;
}
/// What computes a rank; one about which nothing is known where the machine names none.
const Accelerator& accelerator_of(const Topology& topology, Rank rank = Rank{0});
/// The two directions of one cable: same rate, latency and kind.
bool is_reverse(const Link& a, const Link& b);
/// Something visible, and no control characters: such names survive every file format.
bool is_device_name(std::string_view name);
/// What readers accept for one link; routes add up thousands of them without overflow.
inline constexpr Time longest_latency = Time::picoseconds(1'000'000'000'000);

std::string_view to_string(DeviceKind);
std::string_view to_string(LinkKind);

}  // namespace rehearse
