// Trainings with parameter servers, and what they must leave: synchronous ones the parameters of
// one device, asynchronous ones those of a plain loop in the order in which updates were applied.
#pragma once

#include <gtest/gtest.h>

#include "strategies/binding/bind_servers.hpp"
#include "strategies/servers/server_report.hpp"
#include "tests/equivalence/plain_training.hpp"

namespace rehearse {

inline constexpr std::size_t server_batch = 8, server_steps = 20;

struct ServerCase {
  std::string name;
  Workload model;
  OptimizerKind optimizer{};
  ParameterServer how;
  std::size_t workers = 4, micro_batch = 2;
  Recompute recompute = Recompute::none;
};
inline void PrintTo(const ServerCase& which, std::ostream* out) { *out << which.name; }

inline SmallTraining training_of(const ServerCase& which) {
  SmallTraining training{.model = which.model, .ranks = which.workers};
  Training& how = training.scenario.training;
  how.precision = Precision::fp32;
  how.global_batch_size = server_batch;
  how.micro_batch_size = which.micro_batch;
  how.optimizer = which.optimizer;
  training.scenario.parallelism.recompute = which.recompute;
  training.scenario.parallelism.bucket_size = 2000_B;
  training.scenario.parameter_server = which.how;
  training.scenario.parameter_server.placement = ServerPlacement::colocated;
  training.scenario.parameter_server.steps = server_steps;
  training.numbers.learning_rate = which.optimizer == OptimizerKind::adam ? 0.001 : 0.02;
  return training;
}

inline BoundServers bind_servers(const SmallTraining& training) {
  const Topology topology = calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us});
  return bound_servers_of(training.scenario, training.model, topology, ProductCost{1_us, 1_us, 1},
                          training.numbers);
}

inline std::vector<ServerCase> synchronous_cases() {
  return {
      ServerCase{"one", small_mlp(), OptimizerKind::sgd, {.servers = 1}},
      ServerCase{"three_even_adam", small_mlp(), OptimizerKind::adam, {.servers = 3}},
      ServerCase{"two_pipelined",
                 small_mlp(),
                 OptimizerKind::momentum,
                 {.servers = 2, .protocol = ServerProtocol::pipelined},
                 4,
                 1},
      ServerCase{"two_with_whole_layers",
                 small_mlp(),
                 OptimizerKind::momentum,
                 {.servers = 2, .sharding = ServerSharding::layers}},
      ServerCase{
          "gpt_whole_layers_pipelined",
          small_gpt(2),
          OptimizerKind::momentum,
          {.servers = 2, .sharding = ServerSharding::layers, .protocol = ServerProtocol::pipelined},
          2,
          2},
      ServerCase{"llama_recomputing",
                 small_llama(2),
                 OptimizerKind::sgd,
                 {.servers = 2, .protocol = ServerProtocol::pipelined},
                 2,
                 1,
                 Recompute::full}};
}

inline std::vector<ServerCase> asynchronous_cases() {
  return {
      ServerCase{
          "one", small_mlp(), OptimizerKind::sgd, {.servers = 1, .mode = ServerMode::asynchronous}},
      ServerCase{
          "two_pipelined_adam",
          small_mlp(),
          OptimizerKind::adam,
          {.servers = 2, .protocol = ServerProtocol::pipelined, .mode = ServerMode::asynchronous}},
      ServerCase{"three_momentum",
                 small_mlp(),
                 OptimizerKind::momentum,
                 {.servers = 3, .mode = ServerMode::asynchronous},
                 4,
                 1},
      ServerCase{"bounded",
                 small_mlp(),
                 OptimizerKind::sgd,
                 {.servers = 2, .mode = ServerMode::bounded, .staleness = 1}},
      ServerCase{
          "llama_whole_layers",
          small_llama(1),
          OptimizerKind::sgd,
          {.servers = 2, .sharding = ServerSharding::layers, .mode = ServerMode::asynchronous},
          2,
          4}};
}

/// What is left of some runs of the program, all steps of all workers each.
struct ServerResult : TrainingResult {
  Timeline last;
};

inline void expect_one_device(const SmallTraining& training, const ServerResult& result) {
  SmallTraining alone{.model = training.model,
                      .scenario = training.scenario,
                      .ranks = 1,
                      .numbers = training.numbers};
  alone.scenario.parameter_server = {};
  alone.scenario.training.micro_batch_size = server_batch;
  alone.scenario.training.clip_grad = 0;  // servers apply gradients as they come
  const TrainingResult expected = train(alone, server_steps);
  ASSERT_EQ(result.losses.size(), server_steps);
  for (std::size_t s = 0; s < server_steps; ++s)
    EXPECT_NEAR(result.losses[s], expected.losses[s], 1e-5 * expected.losses[s]) << "step " << s;
  EXPECT_LE(difference(result.parameters, expected.parameters), 1e-5);
}

/// What the servers hold and the workers have read, in fp64, all parts in one row of numbers.
class PlainServers {
 public:
  PlainServers(const SmallTraining& training, const BoundServers& servers)
      : training_{training},
        servers_{servers},
        workers_(training.ranks, PlainTraining{training, first(training)}),
        w_(numbers()),
        m_(numbers()),
        v_(numbers()),
        gradient_(training.ranks),
        of_step_(training.ranks, server_steps) {
    losses.resize(server_steps);
    for_each_tensor([&](std::size_t tensor, std::size_t begin, std::size_t size) {
      const std::vector<double>& w = workers_[0].tensors()[tensor].w;
      std::copy_n(w.begin(), size, w_.begin() + static_cast<std::ptrdiff_t>(begin));
    });
  }

  void apply(const ServerNote& note) {
    if (of_step_[note.worker] != note.step) compute(note.worker, note.step);
    const auto [begin, end] = range(note);
    const TrainingNumbers& n = training_.numbers;
    const int count = ++applied_[{note.bucket, note.server}];
    for (std::size_t i = begin; i < end; ++i) {
      const double g = gradient_[note.worker][i];
      if (training_.scenario.training.optimizer == OptimizerKind::adam) {
        m_[i] = n.beta1 * m_[i] + (1 - n.beta1) * g;
        v_[i] = n.beta2 * v_[i] + (1 - n.beta2) * g * g;
        const double m = m_[i] / (1 - std::pow(n.beta1, count));
        const double v = v_[i] / (1 - std::pow(n.beta2, count));
        w_[i] -= n.learning_rate * m / (std::sqrt(v) + n.epsilon);
      } else {
        const bool has = training_.scenario.training.optimizer == OptimizerKind::momentum;
        m_[i] = (has ? n.momentum * m_[i] : 0) + g;
        w_[i] -= n.learning_rate * m_[i];
      }
    }
  }

  void read(const ServerNote& note) {
    const auto numbers = range(note);  // clang 14 does not capture names that are bound to parts
    for_each_tensor([&](std::size_t tensor, std::size_t begin, std::size_t size) {
      for (std::size_t i = std::max(begin, numbers.first);
           i < std::min(begin + size, numbers.second); ++i)
        workers_[note.worker].tensors()[tensor].w[i - begin] = w_[i];
    });
  }

  std::vector<NamedTensor> parameters() {
    for_each_tensor([&](std::size_t tensor, std::size_t begin, std::size_t size) {
      std::copy_n(w_.begin() + static_cast<std::ptrdiff_t>(begin), size,
                  workers_[0].tensors()[tensor].w.begin());
    });
    return workers_[0].parameters();
  }

  std::vector<double> losses;  // means over the workers, by step

 private:
  static std::vector<NamedTensor> first(SmallTraining training) {
    training.scenario.parameter_server = {};
    return train(training, 0).parameters;
  }
  std::size_t numbers() const {
    return static_cast<std::size_t>(servers_.bound.layout.run(std::uint32_t{0}).size);
  }

  template <class Visit>
  void for_each_tensor(Visit visit) const {
    const ModelLayout& layout = servers_.bound.layout;
    std::size_t tensor = 0;
    for (std::uint32_t l = 0; l < layout.layers(); ++l)
      for (std::size_t t = 0; t < layout.tensors(l).size(); ++t) {
        const Run run = layout.run(l, t);
        visit(tensor++, static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.size));
      }
  }

  std::pair<std::size_t, std::size_t> range(const ServerNote& note) const {
    const std::size_t part = note.bucket * servers_.plan.servers.size() + note.server;
    const auto begin =
        static_cast<std::size_t>(servers_.lowered.buffers.at_worker[part].count() / 4);
    return {begin, begin + static_cast<std::size_t>(
                               servers_.plan.buckets[note.bucket].parts[note.server].parameters)};
  }

  void compute(std::size_t worker, std::size_t step) {
    const std::size_t each = server_batch / training_.ranks;
    double loss = 0;
    const auto g = workers_[worker].gradients(server_batch * step + each * worker, each, loss);
    losses[step] += loss / static_cast<double>(training_.ranks);
    gradient_[worker].assign(numbers(), 0);
    for_each_tensor([&](std::size_t tensor, std::size_t begin, std::size_t) {
      std::copy(g[tensor].begin(), g[tensor].end(),
                gradient_[worker].begin() + static_cast<std::ptrdiff_t>(begin));
    });
    of_step_[worker] = step;
  }

  const SmallTraining& training_;
  const BoundServers& servers_;
  std::vector<PlainTraining> workers_;
  std::vector<double> w_, m_, v_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> applied_;  // by part
  std::vector<std::vector<double>> gradient_;                       // by worker: its latest
  std::vector<std::size_t> of_step_;
};

/// The parameters are those of a plain loop over the updates in the order of the run's timeline,
/// and what the run tells of its order is that order.
inline void expect_replayed(const SmallTraining& training, const BoundServers& servers,
                            const ServerResult& result) {
  std::vector<OpId> order;
  for (std::size_t i = 0; i < servers.lowered.notes.size(); ++i)
    if (servers.lowered.notes[i].work > ServerNote::Work::backward)
      order.push_back(static_cast<OpId>(i));
  std::stable_sort(order.begin(), order.end(), [&](OpId a, OpId b) {
    return result.last.spans[index(a)].begin < result.last.spans[index(b)].begin;
  });
  PlainServers plain{training, servers};
  for (const OpId id : order) {
    const ServerNote& note = servers.lowered.notes[index(id)];
    note.work == ServerNote::Work::apply ? plain.apply(note) : plain.read(note);
  }
  for (std::size_t s = 0; s < server_steps; ++s)
    EXPECT_NEAR(result.losses[s], plain.losses[s], 1e-5 * plain.losses[s]) << "step " << s;
  EXPECT_LE(difference(result.parameters, plain.parameters()), 1e-5);
  // What the run tells of its order is that order.
  const auto told = applied_order(servers.lowered, result.last);
  EXPECT_EQ(told.size(), servers.lowered.updates.size());
  std::erase_if(order, [&](OpId id) {
    return servers.lowered.notes[index(id)].work != ServerNote::Work::apply;
  });
  for (std::size_t i = 0; i < told.size(); ++i) ASSERT_EQ(told[i].apply, order[i]) << i;
}

}  // namespace rehearse
