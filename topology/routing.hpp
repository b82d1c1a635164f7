// The links between two devices. Shortest by latency, then by hops; among equals the destination
// chooses (d-mod-k, as InfiniBand's fat-tree routing does), shifted by the channel.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "topology/topology.hpp"

namespace rehearse {

/// Answers route questions about one Topology, which must outlive it. Remembers what it computed.
class Routing {
 public:
  explicit Routing(const Topology& topology);
  ~Routing();
  Routing(Routing&&) noexcept;

  /// Links crossed from `source` to `target`, in order; empty when they are the same device.
  /// Throws InputError naming both when there is no way.
  std::vector<LinkId> route(DeviceId source, DeviceId target, std::size_t channel = 0);

  /// Up to `most` different shortest routes, for `topo route` and for reading.
  std::vector<std::vector<LinkId>> equal_routes(DeviceId source, DeviceId target,
                                                std::size_t most = 64);

  const Topology& topology() const;

 private:
  struct State;  // Boost.Graph stays in routing.cpp
  std::unique_ptr<State> state_;
};

}  // namespace rehearse
