// From a name or a file to a Topology: the one door through which machines come in.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "topology/files/document.hpp"
#include "topology/topology.hpp"

namespace rehearse {

struct ClusterOverrides {
  std::optional<std::size_t> nodes = {}, gpus_per_node = {};
};

/// A catalog name ("dgx-h100"), or a file: cluster TOML/JSON (or a scenario with a [cluster]),
/// NCCL XML, `nvidia-smi topo -m` text, GraphML. Throws InputError with every mistake of the file.
Topology load_cluster(const std::string& name_or_file, const ClusterOverrides& overrides = {});

/// The same for a text already read; `file` names it in errors, and its ending tells the format.
Topology parse_cluster(std::string_view text, const std::string& file,
                       const ClusterOverrides& overrides = {});

/// What a [cluster] table describes, which may have been put together from several files: each
/// value knows its own. `file` is what to call the whole.
Topology read_cluster(const Value& table, const std::string& file);

/// A [cluster] with its machine under `extends`: `node = "dgx-h100"` means that, and so does `name`
/// where nothing else says what a node is.
Value named_machine(Value table);

/// Throws InputError when there is no rank, or when one rank cannot reach another.
void check_reachable(const Topology& topology, const std::string& file);

}  // namespace rehearse
