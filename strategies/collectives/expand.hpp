// The pass that turns whole collectives into their transfers. NCCL needs the whole, the network
// model needs the parts, and a reader wants to see the step between: dump the Program before and
// after.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/collective_part.hpp"
#include "sim/program/program.hpp"
#include "topology/routing.hpp"

namespace rehearse {

struct ChosenAlgorithm {
  std::string_view name;
  std::uint16_t protocol = 0;
};

struct ExpandOptions {
  std::string algorithm = "auto";  // auto: the fastest for each collective by itself
  std::uint16_t protocol = 0;      // of the topology's, where the algorithm is named
  std::function<ChosenAlgorithm(const Collective&)> choose = {};  // in place of both
  bool by_library = false;  // one op for each rank of a collective, which a library will run
};

struct Expanded {
  Program program;
  std::vector<OpId> origin;           // by op: the one that it was, or is a part of
  std::vector<CollectivePart> parts;  // by library: these ops are calls of it
};

/// The same program with every collective expanded. A rank's part begins when its own inputs and
/// the op before it on its stream are done, and its later ops wait for its own part only. Throws
/// InputError when the named algorithm cannot do one of the collectives.
Program expand_collectives(const Program& program, Routing& routing,
                           const ExpandOptions& options = {});
/// The same, and whence each op is; nothing when these would be more than `most_ops`.
std::optional<Expanded> expand_within(const Program& program, Routing& routing,
                                      const ExpandOptions& options, std::size_t most_ops);

}  // namespace rehearse
