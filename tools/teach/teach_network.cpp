// Collectives go the way of `rehearse bench`: every algorithm that applies, or the one named.
#include "tools/teach/teach_network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/precision.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/collectives/choose.hpp"

namespace rehearse {

namespace {

constexpr std::string_view suffix = "_time";
constexpr Dimensions second{.seconds = 1}, byte{.bytes = 1}, byte_rate{.seconds = -1, .bytes = 1};

bool is_collective(std::string_view name) {
  constexpr std::string_view kinds[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                        "reduce",     "all_to_all",     "send_recv"};
  return name.ends_with(suffix) &&
         std::find(std::begin(kinds), std::end(kinds),
                   name.substr(0, name.size() - suffix.size())) != std::end(kinds);
}

Bytes gradient_bytes(const LoadedScenario& loaded) {
  const Training& training = loaded.scenario.training;
  const Precision precision = training.gradients_in_fp32 ? Precision::fp32 : training.precision;
  return Bytes{loaded.workload.parameters() * bytes_of(precision).count()};
}

Amount collective_time(const LoadedScenario& loaded, std::string_view kind,
                       const NetworkDetail& detail) {
  const Topology& topology = loaded.topology;
  CollectiveShape shape{.kind = collective_kind(kind)};
  for (std::size_t r = 0; r < topology.rank_count(); ++r)
    shape.group.push_back(static_cast<Rank>(r));
  Routing routing(topology);
  const ShapedRoofline cost;
  FastSimulator engine(routing, cost);
  CollectiveChooser::Wish wish;
  if (!detail.algorithm.empty()) wish.algorithms = {detail.algorithm};
  if (!detail.protocol.empty()) wish.protocols = {detail.protocol};
  CollectiveChooser chooser(shape, routing, wish);
  const Bytes size = detail.size == "model" ? gradient_bytes(loaded) : parse_bytes(detail.size);
  return {chooser.best(size, engine).result.time.seconds().count(), second};
}

std::vector<LinkId> path_to(const Topology& topology, std::size_t rank) {
  if (rank == 0 || rank >= topology.rank_count())
    throw InputError(
        fmt::format("to={} is not one of the other {} ranks", rank, topology.rank_count() - 1));
  Routing routing(topology);
  return routing.route(topology.device_of(Rank{0}), topology.device_of(static_cast<Rank>(rank)));
}

}  // namespace

bool is_network_quantity(std::string_view name) {
  return is_collective(name) || name == "path_latency" || name == "path_bandwidth" ||
         name == "gradient_bytes";
}

NetworkDetail network_detail(const std::vector<std::string>& with,
                             std::vector<std::string>& changes) {
  NetworkDetail detail;
  for (const std::string& word : with) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals);
    const std::string value = word.substr(std::min(equals + 1, word.size()));
    if (key == "size")
      detail.size = value;
    else if (key == "algorithm")
      detail.algorithm = value;
    else if (key == "message_protocol")
      detail.protocol = value;
    else if (key == "to")
      detail.to = static_cast<std::size_t>(std::strtoul(value.c_str(), nullptr, 10));
    else
      changes.push_back(word);
  }
  return detail;
}

Amount measure_network(const LoadedScenario& loaded, std::string_view name,
                       const NetworkDetail& detail) {
  const Topology& topology = loaded.topology;
  if (name == "gradient_bytes") return {static_cast<double>(gradient_bytes(loaded).count()), byte};
  if (is_collective(name))
    return collective_time(loaded, name.substr(0, name.size() - suffix.size()), detail);
  const std::vector<LinkId> path = path_to(topology, detail.to);
  if (name == "path_latency") {
    Time sum;
    for (const LinkId link : path) sum += topology[link].latency;
    return {sum.seconds().count(), second};
  }
  BytesPerSecond least = topology[path.front()].bandwidth;
  for (const LinkId link : path) least = std::min(least, topology[link].bandwidth);
  return {least.count(), byte_rate};
}

}  // namespace rehearse
