// Reduction and multicast inside a switch (NVLS, SHARP) as a building block.
#pragma once

#include <span>
#include <vector>

#include "strategies/collectives/emission.hpp"

namespace rehearse {

/// Ranks behind one switch that reduces; each owns one chunk of the data.
struct SwitchGroup {
  std::vector<Rank> ranks;
  std::vector<std::uint32_t> owns;    // by position; a permutation
  std::vector<HopId> gather, spread;  // by position: reduced into its chunk, sent out from it
};

enum class SwitchPart : std::uint8_t { all_reduce, reduce_scatter, all_gather };

/// Of the library's shortest, in a piece of each rank's chunk: 128 KiB where those are 32 (NCCL's
/// nvlsChunkSize).
inline constexpr std::size_t chunks_in_switch = 4;

/// Whether the ranks of each group hang on one switch that reduces.
bool share_reducing_switch(const Topology& topology, std::span<const std::vector<Rank>> groups);

/// Adds what `part` needs, on two lanes from `on.lane` on.
void declare_switch(Pattern& pattern, SwitchGroup& group, SwitchPart part, LaneTag on,
                    const Connection& like);
/// Each chunk goes through the switch in `pieces`, so that one is spread while the next is reduced.
void emit_switch(Emission& out, std::span<const SwitchGroup> groups, std::span<const Slice> data,
                 std::size_t pieces);

}  // namespace rehearse
