// Draws machines and Programs. Values come from short lists that hold the corners (zero, equal,
// very unequal) more often than a uniform draw would.
#include "tests/support/random_program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse {

namespace {

BytesPerSecond random_bandwidth(Draw& draw) {
  return BytesPerSecond{draw.of<double>({1e9, 12.5e9, 25e9, 25e9, 50e9, 450e9, 3.7e9, 7.77e10})};
}

Time random_latency(Draw& draw) {
  return Time::picoseconds(draw.of<std::int64_t>({0, 0, 700, 500'000, 1'000'000, 1'234'567}));
}

DeviceId add_gpu(Topology& topology, std::size_t number) {
  return topology.add({.name = fmt::format("gpu{}", number),
                       .kind = DeviceKind::gpu,
                       .node = static_cast<NodeId>(0)});
}

DeviceId add_switch(Topology& topology, std::size_t number) {
  return topology.add({.name = fmt::format("switch{}", number),
                       .kind = DeviceKind::network_switch,
                       .reduces = true});
}

void cable(Draw& draw, Topology& topology, DeviceId a, DeviceId b) {
  topology.connect_both({.source = a,
                         .target = b,
                         .bandwidth = random_bandwidth(draw),
                         .latency = random_latency(draw)});
}

void random_graph(Draw& draw, Topology& topology, const std::vector<DeviceId>& gpus) {
  std::vector<DeviceId> devices = gpus;
  const std::size_t switches = draw.below(4);
  for (std::size_t i = 0; i < switches; ++i) devices.push_back(add_switch(topology, i));
  // A tree reaches everybody; some cables more make choices, and equal routes.
  for (std::size_t i = 1; i < devices.size(); ++i)
    cable(draw, topology, devices[draw.below(i)], devices[i]);
  for (std::size_t i = draw.below(devices.size()); i > 0; --i) {
    const DeviceId a = draw.of(devices), b = draw.of(devices);
    if (a != b) cable(draw, topology, a, b);
  }
}

std::vector<Rank> random_others(Draw& draw, Rank self, std::size_t ranks) {
  std::vector<Rank> others;
  for (std::size_t r = 0; r < ranks; ++r)
    if (static_cast<Rank>(r) != self && draw.once_in(2)) others.push_back(static_cast<Rank>(r));
  if (others.empty()) others.push_back(static_cast<Rank>((index(self) + 1) % ranks));
  return others;
}

Connection random_connection(Draw& draw, std::size_t ranks, std::size_t protocols) {
  Connection connection{.source = static_cast<Rank>(draw.below(ranks)),
                        .target = static_cast<Rank>(draw.below(ranks)),
                        .channel = static_cast<std::uint16_t>(draw.below(3)),
                        .protocol = static_cast<std::uint16_t>(draw.below(protocols)),
                        .posted = draw.once_in(2),
                        .by_kernels = draw.once_in(2)};
  if (draw.once_in(6)) {
    connection.shape = Connection::Shape::multicast;
    connection.target = connection.source;
    connection.others = random_others(draw, connection.source, ranks);
  } else if (draw.once_in(6)) {
    connection.shape = Connection::Shape::switch_reduce;
    connection.source = connection.target;
    connection.others = random_others(draw, connection.target, ranks);
  }
  return connection;
}

std::vector<OpId> random_after(Draw& draw, std::size_t ops) {
  std::vector<OpId> after;
  for (std::size_t i = ops == 0 ? 0 : draw.below(4); i > 0; --i)
    after.push_back(static_cast<OpId>(draw.below(ops)));
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  return after;
}

Compute random_kernel(Draw& draw) {
  Compute work{.flops = Flops{draw.of<double>({0, 1e6, 3e9, 1.7e10})},
               .traffic = Bytes{draw.of<std::int64_t>({0, 1'000'000, 200'000'000})},
               .fixed = random_latency(draw)};
  if (draw.once_in(3))
    work.gemm = {.m = draw.of<std::int64_t>({1, 64, 129, 4096}),
                 .n = draw.of<std::int64_t>({1, 64, 1000}),
                 .k = draw.of<std::int64_t>({1, 128, 5000}),
                 .batch = draw.of<std::int64_t>({1, 1, 12})};
  if (draw.once_in(2)) work.math = static_cast<Precision>(draw.below(precision_words.size()));
  return work;
}

Stream or_queue(Draw& draw, Stream stream, bool queues) {
  return queues && draw.once_in(2) ? queue_lane(draw.below(2)) : stream;
}

void add_random_transfer(Draw& draw, Program& program, const std::vector<OpId>& after,
                         bool queues) {
  const Bytes size{draw.of<std::int64_t>(
      {0, 1, 8, 4096, 65'536, 1'000'000, 1 << 20, 1 << 20, 12'345'678, 64 << 20})};
  const Transfer work{
      .connection = static_cast<ConnectionId>(draw.below(program.connections().size())),
      .size = size,
      .wire = draw.once_in(4) ? size + size : size};
  program.add_transfer(or_queue(draw, comm_lane(draw.below(3)), queues),
                       {program.name("move"), static_cast<std::uint32_t>(program.size())}, work,
                       after);
}

}  // namespace

Topology random_topology(Draw& draw) {
  Topology topology;
  topology.accelerators.push_back({.name = "random",
                                   .memory_bandwidth = BytesPerSecond{2e12},
                                   .peaks = {{"bf16", FlopsPerSecond{3e14}}}});
  std::vector<DeviceId> gpus;
  const std::size_t ranks = draw.between(2, 9), shape = draw.below(4);
  for (std::size_t i = 0; i < ranks; ++i) gpus.push_back(add_gpu(topology, i));
  if (shape == 0) {
    topology.name = "star";
    const DeviceId hub = add_switch(topology, 0);
    for (const DeviceId gpu : gpus) cable(draw, topology, gpu, hub);
  } else if (shape == 1) {
    topology.name = "trunk";
    const DeviceId left = add_switch(topology, 0), right = add_switch(topology, 1);
    for (std::size_t i = 0; i < ranks; ++i)
      cable(draw, topology, gpus[i], i % 2 == 0 ? left : right);
    cable(draw, topology, left, right);
  } else if (shape == 2) {
    topology.name = "mesh";
    for (std::size_t i = 0; i < ranks; ++i)
      for (std::size_t j = 0; j < i; ++j) cable(draw, topology, gpus[i], gpus[j]);
  } else {
    topology.name = "graph";
    random_graph(draw, topology, gpus);
  }
  return topology;
}

Program random_program(Draw& draw, const Topology& topology) {
  const std::size_t ranks = topology.rank_count();
  Program program;
  program.protocols.push_back({});
  if (draw.once_in(2))
    program.protocols.push_back({.name = "slow",
                                 .overhead = random_latency(draw),
                                 .payload = 0.5,
                                 .limit = random_bandwidth(draw)});
  for (std::size_t i = draw.between(1, 3 * ranks); i > 0; --i)
    program.connect(random_connection(draw, ranks, program.protocols.size()));
  const bool queues = draw.once_in(3);
  for (std::size_t i = draw.between(1, 80); i > 0; --i) {
    const std::vector<OpId> after = random_after(draw, program.size());
    const auto rank = static_cast<Rank>(draw.below(ranks));
    const auto number = static_cast<std::uint32_t>(program.size());
    const std::size_t kind = draw.below(8);
    if (kind == 0) {
      program.add_marker(rank, or_queue(draw, Stream::compute, queues),
                         {program.name("mark"), number}, after);
    } else if (kind <= 2) {
      const Compute work = random_kernel(draw);
      const Stream stream = draw.once_in(3) ? Stream::copy : Stream::compute;
      program.add_compute(rank, or_queue(draw, stream, queues), {program.name("work"), number},
                          work, after);
    } else {
      add_random_transfer(draw, program, after, queues);
    }
  }
  return program;
}

}  // namespace rehearse
