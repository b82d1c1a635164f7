// A parameter server's run before it is a Program: who trains and who serves, which bytes go where,
// and how long each kind of work takes.
//
//   worker   │ forward │ backward │            buckets are in the order of the backward pass; the
//   buckets  [2][1][0]   [0][1][2]             forward pass needs the last one first
//              ▲ pull       ▼ push
//   servers  shard 0 │ shard 1 │ …             `parts` says how much of a bucket each one has
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/executor.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/workload/workload.hpp"

namespace rehearse {

/// One server's part of one bucket.
struct ServerPart {
  std::int64_t parameters = 0;  // 0: this server has nothing of the bucket
  Bytes pushed, pulled;         // bytes of one update, and of one answer
  Time apply;                   // an update by the optimizer
  Time accumulate;              // adding a gradient to the others' (synchronous)
  Time read;                    // copying what is to be sent
};

struct ServerBucket {
  std::vector<Time> forward, backward;  // of one micro-batch, by kind of worker
  std::vector<ServerPart> parts;        // by server
  std::int64_t parameters = 0;
  std::vector<std::uint32_t> layers;  // from the last one on
};

struct ServerPlan {
  ParameterServer how;
  Imperfection imperfection;
  std::vector<Rank> workers, servers;
  std::vector<std::uint32_t> kind;    // by worker: workers with the same accelerator are one kind
  std::vector<ServerBucket> buckets;  // one, unless pipelined
  std::vector<std::size_t> owner;     // by layer: its server, where servers have whole layers
  std::size_t microbatches = 1;       // of a worker's step
  std::int64_t parameters = 0;
  double samples = 0, tokens = 0;  // of a worker's step
  Flops model_flops;               // of a worker's step
};

/// Ranks that serve, and those that train.
struct ServerRanks {
  std::vector<Rank> workers, servers;
};
/// Dedicated servers are the first ranks of the last nodes, which do nothing else. Colocated ones
/// are spread evenly over all ranks.
ServerRanks server_ranks(const ParameterServer& how, const Topology& topology);

/// What does not come out even, or makes no sense together with other keys.
std::vector<KeyProblem> server_problems(const Scenario& scenario, const Workload& workload,
                                        const Topology& topology);

/// Of a scenario without problems.
ServerPlan plan_servers(const Scenario& scenario, const Workload& workload,
                        const Topology& topology, const CostModel& cost);

}  // namespace rehearse
