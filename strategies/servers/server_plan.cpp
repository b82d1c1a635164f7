// Layers are put into buckets, buckets cut over servers, and all work is priced once.
#include "strategies/servers/server_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/engine/cost_model.hpp"
#include "strategies/layers/optimizer.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/plan/step_plan.hpp"

namespace rehearse {

namespace {

/// A layer of the model as servers see it.
struct LayerLoad {
  std::int64_t parameters = 0;
  std::vector<Time> forward, backward;  // by kind of worker
};

// Times of each layer in forward order, whichever way the tape runs.
std::vector<Time> layer_times(const Tape& tape, bool forward) {
  std::vector<Time> times;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : tape.layer_end) {
    Time sum;
    for (std::uint32_t i = begin; i < end; ++i) sum += tape.steps[i].time;
    times.push_back(sum);
    begin = end;
  }
  if (!forward) std::reverse(times.begin(), times.end());
  return times;
}

void add_kind(std::vector<LayerLoad>& layers, const StepPlan& plan) {
  const StageWork& work = plan.works.front();
  const std::vector<Time> forward = layer_times(work.forward, true),
                          backward = layer_times(work.backward, false);
  ASSERT(forward.size() == work.layers.size() && backward.size() == work.layers.size());
  layers.resize(work.layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    layers[l].parameters = plan.layers.kinds()[work.layers[l]].parameters;
    layers[l].forward.push_back(forward[l]);
    layers[l].backward.push_back(backward[l]);
  }
}

void add(std::vector<Time>& sums, const std::vector<Time>& more) {
  sums.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
}

/// Prices the work of a server; `device` is its own.
class ServerCosts {
 public:
  ServerCosts(const Scenario& scenario, const Accelerator& device, const CostModel& cost,
              std::size_t workers)
      : training_{scenario.training},
        how_{scenario.parameter_server},
        format_{state_format(training_)},
        device_{device},
        cost_{cost},
        workers_{static_cast<double>(workers)} {}

  ServerPart part(std::int64_t parameters) const {
    ServerPart part{.parameters = parameters};
    if (parameters == 0) return part;
    const std::int64_t touched = share(parameters, 1 - how_.sparsity);
    const bool sparse = how_.sparsity > 0;
    part.pushed = touched * (format_.gradient + (sparse ? how_.index_bytes : Bytes{}));
    part.pulled = pulled(parameters);
    // An update touches what it brings; in the synchronous mode the sum of all brings more.
    const bool waits = how_.mode == ServerMode::synchronous;
    const std::int64_t updated = waits ? share(parameters, changed(workers_)) : touched;
    for (const Piece& piece : optimizer_pieces(training_, updated))
      part.apply += duration_of(std::get<Compute>(piece.work), device_, cost_);
    const Compute sum{.flops = Flops{static_cast<double>(touched)},
                      .traffic = part.pushed + touched * (format_.gradient + format_.gradient),
                      .math = Precision::fp32};
    part.accumulate = duration_of(sum, device_, cost_);
    part.read = duration_of({.flops = {}, .traffic = part.pulled + part.pulled}, device_, cost_);
    return part;
  }

 private:
  static std::int64_t share(std::int64_t whole, double part) {
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil(static_cast<double>(whole) * part)));
  }
  // Of all parameters, after so many updates that each touch a random share.
  double changed(double updates) const { return 1 - std::pow(how_.sparsity, updates); }

  // Between two pulls of a worker everybody has updated once, in the mean. Whole parameters are
  // sent where that is less than values with indices.
  Bytes pulled(std::int64_t parameters) const {
    const Bytes whole = parameters * format_.parameter;
    if (!how_.incremental_pulls) return whole;
    return std::min(whole,
                    share(parameters, changed(workers_)) * (format_.parameter + how_.index_bytes));
  }

  const Training& training_;
  const ParameterServer& how_;
  StateFormat format_;
  const Accelerator& device_;
  const CostModel& cost_;
  double workers_;
};

// Whole layers, from the last one on, until a bucket is full; where servers have whole layers a
// bucket is one.
std::vector<std::vector<std::size_t>> fill(const Scenario& scenario,
                                           const std::vector<LayerLoad>& layers) {
  const ParameterServer& how = scenario.parameter_server;
  const StateFormat format = state_format(scenario.training);
  Parallelism early = scenario.parallelism;  // gradients are pushed beside the backward pass
  early.overlap_grad_reduce = true;
  Bytes full = bucket_sizes(early).others;
  if (how.sharding == ServerSharding::layers) full = Bytes{1};
  std::vector<std::vector<std::size_t>> buckets(1);
  Bytes filled;
  for (std::size_t l = layers.size(); l-- > 0;) {
    if (how.protocol == ServerProtocol::pipelined && filled >= full) {
      buckets.emplace_back();
      filled = Bytes{};
    }
    buckets.back().push_back(l);
    filled += layers[l].parameters * format.gradient;
  }
  return buckets;
}

// The largest layer first, each to the server that has least.
std::vector<std::size_t> deal_layers(const std::vector<LayerLoad>& layers, std::size_t servers) {
  std::vector<std::size_t> order(layers.size()), owner(layers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return layers[a].parameters > layers[b].parameters;
  });
  std::vector<std::int64_t> load(servers);
  for (const std::size_t l : order) {
    owner[l] = static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[owner[l]] += layers[l].parameters;
  }
  return owner;
}

}  // namespace

ServerRanks server_ranks(const ParameterServer& how, const Topology& topology) {
  ServerRanks ranks;
  const std::size_t world = topology.rank_count(), nodes = topology.node_count();
  if (how.placement == ServerPlacement::colocated) {
    for (std::size_t r = 0; r < world; ++r) ranks.workers.push_back(static_cast<Rank>(r));
    for (std::size_t s = 0; s < std::min(how.servers, world); ++s)
      ranks.servers.push_back(static_cast<Rank>(s * world / how.servers));
    return ranks;
  }
  const std::size_t first = nodes - std::min(nodes, how.servers);
  std::vector<bool> is_served(nodes, false);
  for (std::size_t r = 0; r < world; ++r) {
    const auto rank = static_cast<Rank>(r);
    const NodeId node = topology[topology.device_of(rank)].node;
    if (node == no_node || index(node) < first) {
      ranks.workers.push_back(rank);
    } else if (!is_served[index(node)]) {
      is_served[index(node)] = true;
      ranks.servers.push_back(rank);
    }
  }
  return ranks;
}

ServerPlan plan_servers(const Scenario& scenario, const Workload& workload,
                        const Topology& topology, const CostModel& cost) {
  ServerPlan plan{.how = scenario.parameter_server, .imperfection = scenario.imperfection};
  const auto [workers, servers] = server_ranks(plan.how, topology);
  plan.workers = workers;
  plan.servers = servers;
  std::vector<LayerLoad> layers;
  std::map<std::uint16_t, std::uint32_t> kinds;  // by accelerator
  for (const Rank worker : workers) {
    const std::uint16_t device = topology[topology.device_of(worker)].accelerator;
    const auto [known, is_new] = kinds.emplace(device, static_cast<std::uint32_t>(kinds.size()));
    plan.kind.push_back(known->second);
    if (!is_new) continue;
    const StepPlan step =
        plan_step(scenario, workload, workers.size(), accelerator_of(topology, worker), cost);
    add_kind(layers, step);
    plan.microbatches = step.batch.microbatches;
    plan.samples = static_cast<double>(step.batch.global) / static_cast<double>(workers.size());
    plan.tokens = plan.samples * static_cast<double>(step.seq_length);
    plan.model_flops = (1 / static_cast<double>(workers.size())) * step.model_flops;
    plan.parameters = step.works.front().parameters;
  }
  const std::size_t count = servers.size();
  plan.owner = deal_layers(layers, count);
  for (const std::vector<std::size_t>& members : fill(scenario, layers)) {
    ServerBucket& bucket = plan.buckets.emplace_back();
    std::vector<std::int64_t> shares(count);
    for (const std::size_t l : members) {
      add(bucket.forward, layers[l].forward);
      add(bucket.backward, layers[l].backward);
      bucket.parameters += layers[l].parameters;
      bucket.layers.push_back(static_cast<std::uint32_t>(l));
      shares[plan.owner[l]] += layers[l].parameters;
    }
    // Cut evenly every part is as long as the longest, as the chunks of a collective are.
    const auto cut = static_cast<std::int64_t>(count);
    if (plan.how.sharding == ServerSharding::even)
      std::fill(shares.begin(), shares.end(), (bucket.parameters + cut - 1) / cut);
    for (std::size_t s = 0; s < count; ++s)
      bucket.parts.push_back(
          ServerCosts(scenario, accelerator_of(topology, servers[s]), cost, workers.size())
              .part(shares[s]));
  }
  return plan;
}

}  // namespace rehearse
