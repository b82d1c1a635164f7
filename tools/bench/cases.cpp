// Programs written out by hand, so that the measurement depends on the engines alone.
#include "tools/bench/cases.hpp"

#include <fmt/format.h>

namespace rehearse {

namespace {

DeviceId add_gpu(Topology& topology, std::size_t number) {
  return topology.add({.name = fmt::format("gpu{}", number), .kind = DeviceKind::gpu});
}

}  // namespace

BenchCase ring_all_reduce(std::size_t ranks) {
  BenchCase made;
  Program& program = made.program;
  for (std::size_t i = 0; i < ranks; ++i) add_gpu(made.topology, i);
  std::vector<ConnectionId> to_next;
  for (std::size_t i = 0; i < ranks; ++i) {
    const std::size_t next = (i + 1) % ranks;
    made.topology.connect({.source = static_cast<DeviceId>(i),
                           .target = static_cast<DeviceId>(next),
                           .bandwidth = 50.0_GBps,
                           .latency = 1_us});
    to_next.push_back(
        program.connect({.source = static_cast<Rank>(i), .target = static_cast<Rank>(next)}));
  }
  const std::size_t steps = 2 * (ranks - 1);
  program.reserve(steps * ranks, steps * ranks);
  const std::uint32_t name = program.name("ring_all_reduce");
  const Cut parts{{.size = 1_GiB}, ranks};
  std::vector<OpId> arrived(ranks), sent(ranks);  // by sender
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < ranks; ++i) {
      const Slice part = parts[(i + 2 * ranks - step % ranks) % ranks];
      const Transfer work{.connection = to_next[i],
                          .combine = step < ranks - 1 ? Combine::sum : Combine::overwrite,
                          .source_offset = part.offset,
                          .target_offset = part.offset,
                          .size = part.size,
                          .wire = part.size};
      const std::span<const OpId> after{&arrived[(i + ranks - 1) % ranks], step == 0 ? 0U : 1U};
      sent[i] =
          program.add_transfer(Stream::comm, {name, static_cast<std::uint32_t>(step)}, work, after);
    }
    arrived = sent;
  }
  return made;
}

BenchCase all_to_all(std::size_t nodes, std::size_t gpus) {
  BenchCase made;
  Topology& topology = made.topology;
  const std::size_t ranks = nodes * gpus;
  for (std::size_t i = 0; i < ranks; ++i) add_gpu(topology, i);
  const DeviceId spine = topology.add({.name = "spine", .kind = DeviceKind::network_switch});
  for (std::size_t n = 0; n < nodes; ++n) {
    const DeviceId hub =
        topology.add({.name = fmt::format("node{}/switch", n), .kind = DeviceKind::network_switch});
    const DeviceId nic =
        topology.add({.name = fmt::format("node{}/nic", n), .kind = DeviceKind::nic});
    for (std::size_t g = 0; g < gpus; ++g)
      topology.connect_both({.source = static_cast<DeviceId>(n * gpus + g),
                             .target = hub,
                             .bandwidth = 450.0_GBps,
                             .latency = 500_ns});
    topology.connect_both(
        {.source = hub, .target = nic, .bandwidth = 64.0_GBps, .latency = 500_ns});
    topology.connect_both(
        {.source = nic, .target = spine, .bandwidth = 50.0_GBps, .latency = 1_us});
  }
  const std::uint32_t name = made.program.name("all_to_all");
  for (std::size_t i = 0; i < ranks; ++i)
    for (std::size_t j = 1; j < ranks; ++j) {
      const ConnectionId way = made.program.connect(
          {.source = static_cast<Rank>(i), .target = static_cast<Rank>((i + j) % ranks)});
      made.program.add_transfer(comm_lane(j - 1), {name, static_cast<std::uint32_t>(j)},
                                {.connection = way, .size = 1_MiB, .wire = 1_MiB}, {});
    }
  return made;
}

}  // namespace rehearse
