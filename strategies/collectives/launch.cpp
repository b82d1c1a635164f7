// Every rank launches at once, and none of its transfers leaves before.
#include "strategies/collectives/launch.hpp"

#include <algorithm>
#include <vector>

namespace rehearse {

ConnectionId connect_launch(Program& program, Rank rank, Time launch) {
  const Time overhead = program.protocols.empty() ? Time{} : program.protocols.front().overhead;
  return program.connect({.source = rank,
                          .target = rank,
                          .by_kernels = true,
                          .latency = std::max(launch - overhead, Time::picoseconds(1))});
}

Program launched_program(const CollectiveRehearsal& rehearsal, std::span<const Rank> group,
                         Bytes size, std::uint16_t protocol) {
  const Time launch = rehearsal.launch(protocol);
  if (launch == Time{}) return rehearsal.program(size, protocol);
  Program program;
  program.protocols = rehearsal.pattern().protocols;
  std::vector<std::vector<OpId>> entry;
  for (const Rank rank : group) {
    if (index(rank) >= entry.size()) entry.resize(index(rank) + 1);
    const ConnectionId connection = connect_launch(program, rank, launch);
    entry[index(rank)] = {program.add_transfer(
        comm_lane(0), {program.name("launch"), Label::no_number}, {.connection = connection}, {})};
  }
  rehearsal.emit_into(program, buffers_for(size), {.protocol = protocol, .entry = entry});
  return program;
}

}  // namespace rehearse
