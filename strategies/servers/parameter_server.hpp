// Parameter servers (Li et al. 2014, "Scaling distributed machine learning with the parameter
// server"): workers push gradients, servers apply them in the order in which they arrive, workers
// pull parameters. All workers and all their steps are one Program.
//
//   worker 0   [compute]─push╮             ╭─pull▶[compute]─push╮          request_response
//   server  q       ─────────[apply][read]─╯──[apply]…─────────[apply]     one queue a server
//   worker 1     [compute]──────push───╯ ack, request …                    who comes first, goes
//   first
//
// request_response: the whole update is pushed and acknowledged, then parameters are asked for and
// sent. A worker alone takes compute + (α + G/β) + apply + 2α + read + (α + P/β) a step.
// pipelined: a bucket is pushed as soon as its backward pass is done, parameters are asked for when
// all of it is, and come in the order in which the forward pass needs them.
//
// synchronous: servers add up the gradients of all workers and apply the sum once.
// asynchronous: each update is applied as it comes; the parameters that a worker pulls have those
// of everybody who came before. bounded (Ho et al. 2013, "stale synchronous parallel"): the answer
// to a worker that has finished step k waits until all have finished step k - s.
//
// One server takes at least W (G + P) / β a round: that is its network. S servers take S-th of it.
#pragma once

#include "sim/program/program.hpp"
#include "strategies/servers/server_plan.hpp"
#include "topology/routing.hpp"

namespace rehearse {

/// What an op computes, for those who give it kernels (numbers/bind_servers.hpp).
struct ServerNote {
  enum class Work : std::uint8_t { none, forward, middle, backward, add, apply, apply_sum, read };
  Work work = Work::none;
  std::uint32_t worker = 0, step = 0, bucket = 0, server = 0;
};

/// Buffers of the program. A part of a bucket lies behind the one before it, at the worker and at
/// its server; boxes of a server are as long as all that it has, one for each worker.
struct ServerBuffers {
  static constexpr Buffer gradients{0}, parameters{1};             // at a worker
  static constexpr Buffer state{2}, inbox{3}, outbox{4}, sums{5};  // at a server
  static constexpr std::size_t count = 6;
  std::vector<Bytes> at_worker, at_server;  // by bucket, then server
  Bytes box;
};

struct ServerProgram {
  Program program;
  std::size_t servers = 1;     // of the program; one may stand for several
  std::size_t stands_for = 1;  // how many each of them stands for
  struct Step {
    OpId begin{};  // the first kernel
    OpId end{};    // after the last pull: a marker
  };
  std::vector<std::vector<Step>> steps;  // by worker and step
  /// An update of a bucket on a server, and the moment at which its worker read the parameters that
  /// it was computed with.
  struct Update {
    std::uint32_t worker = 0, step = 0, bucket = 0, server = 0;
    OpId apply{};
    OpId read = no_op;  // no_op: the parameters that everybody begins with
  };
  std::vector<Update> updates;
  ServerBuffers buffers;
  std::vector<ServerNote> notes;  // by OpId, when they were asked for
};

/// Servers that are alike, with the same links to every worker, are one when `fold` allows it: it
/// gives the same picoseconds.
ServerProgram lower_servers(const ServerPlan& plan, Routing& routing, bool fold,
                            bool notes = false);

}  // namespace rehearse
