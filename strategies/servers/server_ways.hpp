// The connections between workers and servers, and whether servers are so much alike that one
// stands for all.
//
// They are when every way between a worker and a server is the same but for links that only that
// server's ways use, and those have twins at every other server: then swapping two servers changes
// nothing. What a worker sends to all of them crosses its own links together, with their number as
// weight; at the server it is alone.
//
//   worker ═══(× S)═══ switch ─── server 0          one flow stands for S
//                         ╎╌╌╌╌╌╌ server 1 …
#pragma once

#include <vector>

#include "sim/program/program.hpp"
#include "topology/routing.hpp"

namespace rehearse {

struct ServerWays {
  std::size_t servers = 1, stands_for = 1;
  std::vector<ConnectionId> there, back;  // by worker, then server
  ConnectionId to(std::size_t worker, std::size_t server) const {
    return there[worker * servers + server];
  }
  ConnectionId from(std::size_t worker, std::size_t server) const {
    return back[worker * servers + server];
  }
};

/// Adds the connections to the program. `alike` says whether the servers hold and do the same.
ServerWays connect_servers(Program& program, const std::vector<Rank>& workers,
                           const std::vector<Rank>& servers, Routing& routing, bool alike);

}  // namespace rehearse
