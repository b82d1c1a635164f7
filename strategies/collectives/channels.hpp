// Channels split the data of a ring or tree; each has its own order, lanes and tags.
#pragma once

#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

/// The data of each channel.
std::vector<Slice> shares_of(Slice data, std::size_t channels);

/// Channels start from different ranks of a node, and so from different NICs; only where there are
/// more channels than ranks does the number choose among a rank's own NICs.
Connection connection_like(std::size_t channel, std::size_t ranks_of_node);

}  // namespace rehearse
