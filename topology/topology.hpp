// The machine as plain data: devices, and directed links between them. Routes are another idea
// (topology/routing.hpp); so are files (topology/io_*.hpp) and shapes (topology/generators.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ids.hpp"
#include "sim/units.hpp"
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
struct Link {
  DeviceId source{}, target{};
  BytesPerSecond bandwidth;
  Time latency;
  LinkKind kind = LinkKind::other;
  double worn = 1;
  Time delay;
  friend bool operator==(const Link&, const Link&) = default;
};

/// How messages of one kind travel: NCCL's LL, LL128 and Simple, or a plain one.
struct Protocol {
  std::string name = "simple";
  Time overhead;           // per message, added to its route's latency
  double payload = 1;      // share of the bytes on the wire that is the user's (LL: 0.5)
  BytesPerSecond limit{};  // of one channel; zero: none
  friend bool operator==(const Protocol&, const Protocol&) = default;
};

/// Devices and links, in the order they were added; ranks are the GPUs in that order, or the CPU
/// sockets where there is no GPU.
class Topology {
 public:
  std::string name;
  std::vector<Accelerator> accelerators;
  std::vector<Protocol> protocols;  // empty: one plain protocol without overhead

  DeviceId add(Device device);
  LinkId connect(Link link);
  /// Both directions of a cable; returns the forward one, the backward one follows it.
  LinkId connect_both(Link forward);

  std::span<const Device> devices() const { return devices_; }
  std::span<const Link> links() const { return links_; }
  const Device& operator[](DeviceId d) const { return devices_[index(d)]; }
  const Link& operator[](LinkId l) const { return links_[index(l)]; }

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

/// The two directions of one cable: same rate, latency and kind.
bool is_reverse(const Link& a, const Link& b);
/// Something visible, and no control characters: such names survive every file format.
bool is_device_name(std::string_view name);
/// What readers accept for one link; routes add up thousands of them without overflow.
inline constexpr Time longest_latency = Time::picoseconds(1'000'000'000'000);

std::string_view to_string(DeviceKind);
std::string_view to_string(LinkKind);

}  // namespace rehearse
