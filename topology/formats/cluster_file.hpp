// The short form of a cluster file: [node] and [fabric], each of some kind, and `nodes`.
#pragma once

#include <cstddef>
#include <optional>

#include "topology/files/fields.hpp"
#include "topology/generators.hpp"

namespace rehearse {

/// The node that a [node] table describes. `gpus` overrides the table's own number.
Topology read_node(const Value& table, std::optional<std::size_t> gpus, Problems& problems);

/// The fabric that a [fabric] table describes.
Fabric read_fabric(const Value& table, Problems& problems);

}  // namespace rehearse
