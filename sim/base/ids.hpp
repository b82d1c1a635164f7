// Strong indices: a Rank is never passed where an OpId is meant.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse {

enum class Rank : std::uint32_t {};          // one accelerator in the job
enum class OpId : std::uint32_t {};          // position in a Program
enum class ConnectionId : std::uint32_t {};  // one way for bytes, in a Program
enum class DeviceId : std::uint32_t {};      // one device of a Topology
enum class LinkId : std::uint32_t {};        // one direction of one cable
enum class NodeId : std::uint32_t {};        // one server of a Topology
enum class Buffer : std::uint32_t {};        // same number on every rank, as in symmetric memory

/// Ops of one stream of a rank run one at a time, in program order. Numbers from `comm` on are
/// communication lanes; ops of different lanes run side by side, as the channels and connections of
/// a collective do. Numbers from `queue` on are served first come, first served: what has been
/// ready longest is next, whatever its place in the program, as requests at a server are.
enum class Stream : std::uint16_t { compute = 0, copy = 1, comm = 2, queue = 0x8000 };

constexpr Stream comm_lane(std::size_t lane) {
  return static_cast<Stream>(static_cast<std::size_t>(Stream::comm) + lane);
}
constexpr Stream queue_lane(std::size_t lane) {
  return static_cast<Stream>(static_cast<std::size_t>(Stream::queue) + lane);
}
constexpr bool is_queue(Stream stream) { return stream >= Stream::queue; }

inline constexpr OpId no_op{UINT32_MAX};
inline constexpr ConnectionId no_connection{UINT32_MAX};
inline constexpr LinkId no_link{UINT32_MAX};
inline constexpr NodeId no_node{UINT32_MAX};  // a device of the fabric, in no server

template <class Id>
constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

}  // namespace rehearse
