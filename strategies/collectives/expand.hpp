// The pass that turns whole collectives into their transfers. NCCL needs the whole, the network
// model needs the parts, and a reader wants to see the step between: dump the Program before and
// after.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/program/collective_part.hpp"
#include "sim/program/program.hpp"
#include "topology/routing.hpp"

namespace rehearse {

struct Expanded {
  Program program;
  std::vector<OpId> origin;           // by op: the one that it was, or is a part of
  std::vector<CollectivePart> parts;  // by library: these ops are calls of it
};

/// The same program with every collective expanded by the algorithm that was decided for it. A
/// rank's part begins when its own inputs and the op before it on its stream are done, and its
/// later ops wait for its own part only. Throws InputError where nothing was decided (decide.hpp),
/// or the algorithm cannot do the collective.
Program expand_collectives(const Program& program, Routing& routing);
/// The same, and whence each op is; nothing when these would be more than `most_ops`.
std::optional<Expanded> expand_within(const Program& program, Routing& routing,
                                      std::size_t most_ops);
/// Every collective as one op for each of its ranks, which a library will run.
Expanded split_collectives(const Program& program, Routing& routing);

}  // namespace rehearse
