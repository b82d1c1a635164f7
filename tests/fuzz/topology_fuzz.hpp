// What every fuzz target of a topology reader does with its bytes: read or refuse, and what was
// read survives being written and read again, in both formats that keep everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/formats/io_graph.hpp"
#include "topology/formats/io_toml.hpp"

namespace rehearse {

/// `parse` takes a text; only InputError may leave it.
template <class Parse>
int fuzz_reader(const std::uint8_t* data, std::size_t size, Parse parse) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  Topology topology;
  try {
    topology = parse(text);
    check_reachable(topology, "fuzz");
  } catch (const InputError& error) {
    ASSERT(!error.problems().empty());
    return 0;
  }
  if (topology.links().size() > 2000) return 0;  // a second of writing finds nothing new
  ASSERT(parse_cluster(write_toml(topology), "again.toml") == topology);
  ASSERT(parse_graphml(write_graphml(topology), "again.graphml") == topology);
  return 0;
}

}  // namespace rehearse
