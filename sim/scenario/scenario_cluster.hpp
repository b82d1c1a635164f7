// The [cluster] of a scenario between its three forms: the table of a file, which knows its places;
// the value in a Scenario, which prints and compares; and the machine itself.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "topology/files/document.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse {

/// Throws InputError with every mistake; files are looked for from the current folder.
Topology topology_of(const ClusterChoice& choice);

/// The value of a table. What is of the wrong type is left out: read_cluster() complains of it.
ClusterChoice cluster_choice(const Value& table);
Value cluster_table(const ClusterChoice& choice);

/// `changes` laid over `base`. Another machine keeps nothing of the first but how many there are;
/// another node keeps all but the node.
Value overlaid_cluster(Value base, const Value& changes);

}  // namespace rehearse
