// What a lesson measures of its machine alone: collectives among all of its ranks, and the way from
// one rank to another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario_file.hpp"
#include "tools/teach/teach_amount.hpp"

namespace rehearse {

struct NetworkDetail {
  std::string size = "model";  // or "64MiB"; "model": as large as the gradients of all parameters
  std::string algorithm, protocol;  // empty: the fastest
  std::size_t to = 1;
};

/// Whether it is one of these: "all_reduce_time", "path_latency", "path_bandwidth",
/// "gradient_bytes".
bool is_network_quantity(std::string_view name);

/// Takes size=…, algorithm=…, message_protocol=… and to=… out of `with`; the rest are `changes` of
/// the scenario.
NetworkDetail network_detail(const std::vector<std::string>& with,
                             std::vector<std::string>& changes);

/// Throws InputError.
Amount measure_network(const LoadedScenario& loaded, std::string_view name,
                       const NetworkDetail& detail);

}  // namespace rehearse
