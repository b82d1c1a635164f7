// What cannot be together with parameter servers, each with the reason and the way out.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "strategies/placement/placement.hpp"
#include "strategies/servers/server_plan.hpp"

namespace rehearse {

namespace {

using KeyProblems = std::vector<KeyProblem>;

void add(KeyProblems& all, KeyProblems more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

KeyProblem problem(std::vector<std::string> keys, std::string_view message) {
  return {std::move(keys), std::string{message}};
}

// One device is one worker, and the servers have what ZeRO would cut.
KeyProblems parallelism_problems(const Parallelism& p) {
  KeyProblems problems;
  const auto one = [&](const char* key, const char* name, std::size_t size) {
    if (size > 1)
      problems.push_back(
          {{key},
           fmt::format("a worker of a parameter server is one device with the whole "
                       "model, but {} is {}; set {} to 1, or leave [parameter_server]"
                       " out",
                       name, size, name)});
  };
  one("tensor_model_parallel_size", "tp", p.tensor);
  one("pipeline_model_parallel_size", "pp", p.pipeline);
  one("virtual_pipeline_model_parallel_size", "vpp", p.virtual_pipeline);
  one("context_parallel_size", "cp", p.context);
  one("expert_model_parallel_size", "ep", p.expert);
  if (p.zero_stage > 0)
    problems.push_back(
        problem({"zero_stage", "use_distributed_optimizer"},
                "ZeRO cuts the optimizer's state over the workers, but with servers the "
                "state is theirs; set zero_stage to 0"));
  if (p.overlap_grad_reduce)
    problems.push_back(
        problem({"overlap_grad_reduce"},
                "overlap_grad_reduce is about all-reduces, of which a parameter server has "
                "none; server_protocol = \"pipelined\" sends gradients beside the backward "
                "pass"));
  if (p.broadcast_parameters)
    problems.push_back(
        problem({"broadcast_parameters"},
                "broadcast_parameters is about collectives, of which a parameter server "
                "has none"));
  return problems;
}

KeyProblems mode_problems(const ParameterServer& how) {
  KeyProblems problems;
  const bool bounded = how.mode == ServerMode::bounded;
  if (bounded && !how.staleness)
    problems.push_back(
        problem({"server_mode"},
                "server_mode bounded needs staleness: how many steps a worker may be ahead "
                "of the slowest"));
  if (!bounded && how.staleness)
    problems.push_back(problem({"staleness"},
                               "staleness bounds server_mode bounded; synchronous has none and "
                               "asynchronous no bound"));
  if (how.index_bytes != ParameterServer{}.index_bytes && how.sparsity == 0)
    problems.push_back(problem({"index_bytes"},
                               "index_bytes go with the values of a sparse update; set "
                               "update_sparsity above 0"));
  if (how.incremental_pulls && how.sparsity == 0)
    problems.push_back(
        problem({"incremental_pulls"},
                "a dense update changes every parameter, so incremental_pulls save nothing;"
                " set update_sparsity above 0"));
  return problems;
}

KeyProblems placement_problems_of(const ParameterServer& how, const Topology& topology) {
  const std::size_t nodes = topology.node_count(), world = topology.rank_count();
  if (how.placement == ServerPlacement::dedicated && how.servers >= std::max<std::size_t>(nodes, 1))
    return {{{"servers", "nodes"},
             fmt::format("{} servers on nodes of their own leave no worker: the cluster has {} "
                         "node{}; add nodes, or set server_placement to colocated",
                         how.servers, nodes, nodes == 1 ? "" : "s")}};
  if (how.placement == ServerPlacement::colocated && how.servers > world)
    return {{{"servers"},
             fmt::format("{} servers on the workers' devices, but there are {} ranks", how.servers,
                         world)}};
  return {};
}

// Streams are numbered in 15 bits, ops in 32.
KeyProblems size_problems(const Scenario& scenario, const Workload& workload, std::size_t workers) {
  const ParameterServer& how = scenario.parameter_server;
  KeyProblems problems;
  if (how.sharding == ServerSharding::layers && how.servers > workload.layers.size())
    problems.push_back({{"servers"},
                        fmt::format("{} servers for {} whole layers; set server_sharding to even",
                                    how.servers, workload.layers.size())});
  constexpr std::size_t most_streams = 30'000, most_steps = 4'000'000;
  if (workers + how.servers > most_streams)
    problems.push_back({{"servers"},
                        fmt::format("{} workers and {} servers are more than the {} that a server "
                                    "can have connections with",
                                    workers, how.servers, most_streams)});
  if (workers * how.steps > most_steps)
    problems.push_back(
        {{"steps_per_worker"},
         fmt::format("{} workers × {} steps = {} are more than the {} that are worth "
                     "waiting for; set steps_per_worker to {} or less",
                     workers, how.steps, workers * how.steps, most_steps,
                     std::max<std::size_t>(1, most_steps / workers))});
  return problems;
}

}  // namespace

std::vector<KeyProblem> server_problems(const Scenario& scenario, const Workload& workload,
                                        const Topology& topology) {
  const ParameterServer& how = scenario.parameter_server;
  if (how.servers == 0) {
    if (how == ParameterServer{}) return {};
    return {problem(
        {"server_mode", "server_protocol", "server_placement", "server_sharding", "staleness",
         "steps_per_worker", "update_sparsity", "index_bytes", "incremental_pulls"},
        "[parameter_server] says how, but not how many: servers is missing")};
  }
  KeyProblems problems = parallelism_problems(scenario.parallelism);
  add(problems, mode_problems(how));
  if (scenario.imperfection.network_jitter > 0)
    problems.push_back(
        problem({"network_jitter"},
                "network_jitter is drawn for collectives, and [parameter_server] has "
                "none; kernel_jitter, rank_jitter and pauses are drawn"));
  if (scenario.imperfection.seeds > 1)
    problems.push_back(problem({"seeds"},
                               "a run with [parameter_server] has many steps of its own: take one "
                               "seed, and more steps_per_worker"));
  if (scenario.compression.method != CompressionKind::none)
    problems.push_back(problem({"method"},
                               "[parameter_server] has sparse updates of its own: set "
                               "update_sparsity instead of [compression]"));
  if (scenario.local_sgd.interval > 0)
    problems.push_back(
        problem({"interval"},
                "[local_sgd] averages the parameters of replicas, [parameter_server] keeps "
                "them on servers; leave one of them out"));
  add(problems, placement_problems_of(how, topology));
  if (!problems.empty()) return problems;
  const std::size_t workers = server_ranks(how, topology).workers.size();
  add(problems, placement_problems(scenario.parallelism, workers));
  add(problems, batch_problems(scenario.training, workers));
  add(problems, size_problems(scenario, workload, workers));
  return problems;
}

}  // namespace rehearse
