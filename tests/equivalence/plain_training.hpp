// Trains the plain models by the textbook rules of the optimizers, in fp64.
#pragma once

#include "kernels/math/philox.hpp"
#include "tests/equivalence/plain_model.hpp"
#include "tests/equivalence/trainings.hpp"

namespace rehearse {

struct PlainTensor {
  std::string name;
  std::vector<double> w, m, v;
};

class PlainTraining {
 public:
  /// Begins with the parameters that the bound step begins with.
  PlainTraining(const SmallTraining& training, const std::vector<NamedTensor>& begin)
      : training_{training} {
    for (const NamedTensor& tensor : begin) {
      PlainTensor& plain = tensors_.emplace_back(PlainTensor{.name = tensor.name});
      plain.w.assign(tensor.values.begin(), tensor.values.end());
      plain.m.resize(plain.w.size());
      plain.v.resize(plain.w.size());
    }
  }

  using Gradients = std::vector<std::vector<double>>;  // by tensor

  /// The mean over the samples [first, first + count) of the training's data.
  Gradients gradients(std::uint64_t first, std::size_t count, double& loss) const {
    Gradients sums;
    for (const PlainTensor& tensor : tensors_) sums.emplace_back(tensor.w.size());
    const bool is_mlp = training_.model.sample == SampleKind::vector;
    const auto length = static_cast<std::int64_t>(is_mlp ? 1 : training_.model.seq_length);
    const double weight = 1 / static_cast<double>(count) / static_cast<double>(length);
    loss = 0;
    for (std::uint64_t k = first; k < first + count; ++k) {
      ScalarTape tape;
      std::map<std::string, std::vector<ScalarTape::Scalar>> leaves;
      for (const PlainTensor& tensor : tensors_)
        for (const double w : tensor.w) leaves[tensor.name].push_back(tape.leaf(w));
      const std::uint64_t seed = training_.numbers.seed;
      PlainModel model{training_.model, leaves, tape, masks(k)};
      const ScalarTape::Scalar root =
          is_mlp ? model.mlp(VectorTask(seed, inputs(), classes()).sample(k))
                 : model.transformer(
                       draw_sequence(seed, k, length, training_.model.transformer.vocabulary));
      loss += weight * tape.value(root);
      const std::vector<double> slopes = tape.gradients(root);
      for (std::size_t t = 0; t < tensors_.size(); ++t)
        for (std::size_t i = 0; i < sums[t].size(); ++i)
          sums[t][i] += weight * slopes[leaves[tensors_[t].name][i]];
    }
    return sums;
  }

  /// One update, after clipping as the scenario says.
  void update(Gradients g) {
    const double limit = training_.scenario.training.clip_grad.value_or(
        training_.model.sample == SampleKind::sequence ? 1 : 0);
    double squares = 0;
    for (const auto& tensor : g)
      for (const double x : tensor) squares += x * x;
    if (limit > 0 && squares > limit * limit)
      for (auto& tensor : g)
        for (double& x : tensor) x *= limit / std::sqrt(squares);
    ++taken_;
    for (std::size_t t = 0; t < tensors_.size(); ++t) update(tensors_[t], g[t]);
  }

  std::vector<NamedTensor> parameters() const {
    std::vector<NamedTensor> list;
    for (const PlainTensor& tensor : tensors_) {
      NamedTensor& named = list.emplace_back(NamedTensor{.name = tensor.name});
      for (const double w : tensor.w) named.values.push_back(static_cast<float>(w));
    }
    return list;
  }
  std::vector<PlainTensor>& tensors() { return tensors_; }

 private:
  // As the header of the masks says (kernels/host/regular_calls.cpp), by Philox alone.
  PlainMasks masks(std::uint64_t sample) const {
    const double p = training_.scenario.training.dropout;
    if (p == 0) return {};
    const std::uint64_t global = training_.scenario.training.global_batch_size;
    const std::uint64_t step = sample / global, in_batch = sample % global;
    const Transformer& m = training_.model.transformer;
    const auto length = static_cast<std::uint64_t>(training_.model.seq_length);
    return {.drops =
                [=, this](std::size_t layer, std::size_t place, std::size_t element) {
                  const std::uint64_t stream = (1ull << 62) + (step << 20) + 4 * layer + place;
                  const std::uint64_t each =
                      place == 3 ? static_cast<std::uint64_t>(m.heads) * length * length
                                 : length * static_cast<std::uint64_t>(m.hidden);
                  const RandomWords words{training_.numbers.seed, stream};
                  return static_cast<double>(words.word(in_batch * each + element)) < p * 0x1p+32;
                },
            .kept = 1 / (1 - p),
            .of_probabilities = !training_.scenario.training.flash_attention};
  }

  std::int64_t inputs() const {
    return std::get<Dense>(training_.model.layers.front().shape).inputs;
  }
  std::int64_t classes() const {
    return std::get<Dense>(training_.model.layers.back().shape).outputs;
  }

  static double length(const std::vector<double>& x) {
    double squares = 0;
    for (const double number : x) squares += number * number;
    return std::sqrt(squares);
  }

  void update(PlainTensor& p, const std::vector<double>& g) const {
    const TrainingNumbers& n = training_.numbers;
    const OptimizerKind kind = training_.scenario.training.optimizer;
    const bool adam = kind == OptimizerKind::adam || kind == OptimizerKind::lamb;
    const double lars = n.trust * length(p.w) / length(g);
    std::vector<double> step(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (adam) {
        p.m[i] = n.beta1 * p.m[i] + (1 - n.beta1) * g[i];
        p.v[i] = n.beta2 * p.v[i] + (1 - n.beta2) * g[i] * g[i];
        const double m = p.m[i] / (1 - std::pow(n.beta1, taken_));
        const double v = p.v[i] / (1 - std::pow(n.beta2, taken_));
        step[i] = n.learning_rate * m / (std::sqrt(v) + n.epsilon);
      } else if (kind == OptimizerKind::sgd) {
        step[i] = n.learning_rate * g[i];
      } else if (kind == OptimizerKind::momentum) {
        p.m[i] = n.momentum * p.m[i] + g[i];
        step[i] = n.learning_rate * p.m[i];
      } else {
        p.m[i] = n.momentum * p.m[i] + n.learning_rate * lars * g[i];
        step[i] = p.m[i];
      }
    }
    const double ratio =
        kind == OptimizerKind::lamb ? n.learning_rate * length(p.w) / length(step) : 1;
    for (std::size_t i = 0; i < g.size(); ++i) p.w[i] -= ratio * step[i];
  }

  const SmallTraining& training_;
  std::vector<PlainTensor> tensors_;
  int taken_ = 0;
};

}  // namespace rehearse
