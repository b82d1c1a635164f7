// A Topology device by device and link by link, in TOML: the form in which every Topology can be
// written and read back exactly. Shapes in few lines are topology/formats/cluster_file.hpp.
#pragma once

#include <string>

#include "topology/files/document.hpp"
#include "topology/files/fields.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// Reads [[device]], [[link]], [accelerator] or [[accelerator]], [[protocol]], [library], `name`.
Topology read_devices_and_links(Fields& fields, Problems& problems);
/// The accelerators, protocols and library only, into a topology that comes from elsewhere.
void read_accelerators(Fields& fields, Problems& problems, Topology& topology);
void read_protocols(Fields& fields, Problems& problems, Topology& topology);
/// A share of something, above 0 and at most 1; without the key what was there stays.
void read_share(Fields& fields, std::string_view key, double& share);
void read_library(Fields& fields, Problems& problems, Topology& topology);

/// As a cluster file; `parse_cluster` gives an equal Topology back.
std::string write_toml(const Topology& topology);
/// Its name, accelerators and protocols only.
std::string write_toml_machine(const Topology& topology);

}  // namespace rehearse
