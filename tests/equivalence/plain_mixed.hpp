// Mixed precision with dynamic loss scaling once more, as plain as can be: an MLP in loops over
// numbers of fp64 that are rounded wherever the algorithm stores them in 16 bits (Micikevicius et
// al. 2018). Its roundings and its rule of the scale are its own; only the data are shared.
#pragma once

#include <cmath>
#include <limits>

#include "tests/equivalence/trainings.hpp"

namespace rehearse {

/// A binary format by its significant bits, the exponent of its least number and its largest.
struct PlainFormat {
  int bits, least;
  double largest;

  double operator()(double x) const {
    if (x == 0 || !std::isfinite(x)) return x;
    int exponent = 0;
    std::frexp(x, &exponent);
    const int last = std::max(exponent - bits, least);
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -last)), last);
    return std::abs(rounded) > largest ? std::copysign(HUGE_VAL, x) : rounded;
  }
};
inline constexpr PlainFormat plain_fp16{11, -24, 65504}, plain_bf16{8, -133, 0x1.fep+127},
    plain_fp32{24, -149, 0x1.fffffep+127};

/// One step after the other; `tensor` is in how many parts the sums over a layer's cut side are
/// made, each rounded before they are added.
class PlainMixed {
 public:
  struct Shape {
    std::size_t replicas = 1, microbatches = 1, rows = 8, tensor = 1;
  };

  PlainMixed(const SmallTraining& training, Shape shape, const std::vector<NamedTensor>& begin)
      : training_{training},
        shape_{shape},
        round_{training.scenario.training.precision == Precision::fp16 ? plain_fp16 : plain_bf16},
        gradients_in_{training.scenario.training.gradients_in_fp32 || how().autocast ? plain_fp32
                                                                                     : round_},
        scale_{how().loss_scaling == LossScaling::dynamic ? training.numbers.loss_scale : 1} {
    for (std::size_t t = 0; t < begin.size(); t += 2) {
      Layer layer{.weight = {begin[t].values.begin(), begin[t].values.end()},
                  .bias = {begin[t + 1].values.begin(), begin[t + 1].values.end()}};
      layer.weight_velocity.resize(layer.weight.size());
      layer.bias_velocity.resize(layer.bias.size());
      layers_.push_back(std::move(layer));
      names_.push_back(begin[t].name);
      names_.push_back(begin[t + 1].name);
    }
  }

  /// The loss of training step `number`; then scale() tells what it was multiplied by, 0 if the
  /// step was skipped.
  double step(std::uint64_t number) {
    for (Layer& layer : layers_) {
      layer.weight16 = rounded(layer.weight);
      layer.bias16 = how().autocast ? layer.bias : rounded(layer.bias);
    }
    double loss = 0;
    std::vector<Gradients> replicas;
    for (std::size_t r = 0; r < shape_.replicas; ++r) {
      Gradients& sum = replicas.emplace_back(zeros());
      for (std::size_t m = 0; m < shape_.microbatches; ++m)
        loss += microbatch(number * global() + (r * shape_.microbatches + m) * shape_.rows, sum);
    }
    Gradients all = replicas.front();
    for (std::size_t r = 1; r < replicas.size(); ++r)
      for (std::size_t t = 0; t < all.size(); ++t)
        for (std::size_t i = 0; i < all[t].size(); ++i)
          all[t][i] = gradients_in_(all[t][i] + replicas[r][t][i]);
    update(all);
    return loss / static_cast<double>(global());
  }
  double scale() const { return last_scale_; }

  std::vector<NamedTensor> parameters() const {
    std::vector<NamedTensor> list;
    for (std::size_t t = 0; t < names_.size(); ++t) {
      const std::vector<double>& w = t % 2 == 0 ? layers_[t / 2].weight : layers_[t / 2].bias;
      NamedTensor& named = list.emplace_back(NamedTensor{.name = names_[t]});
      for (const double x : w) named.values.push_back(static_cast<float>(x));
    }
    return list;
  }

 private:
  using Numbers = std::vector<double>;
  using Gradients = std::vector<Numbers>;  // by tensor
  struct Layer {
    Numbers weight, bias, weight_velocity = {}, bias_velocity = {}, weight16 = {}, bias16 = {};
  };

  const Training& how() const { return training_.scenario.training; }
  std::size_t global() const { return how().global_batch_size; }
  Numbers rounded(Numbers x) const {
    for (double& number : x) number = round_(number);
    return x;
  }
  Gradients zeros() const {
    Gradients all;
    for (const Layer& layer : layers_) {
      all.emplace_back(layer.weight.size());
      all.emplace_back(layer.bias.size());
    }
    return all;
  }

  /// Σ term(k) over [0, count) in `parts` parts, each rounded.
  template <class Term>
  double sum(std::size_t count, std::size_t parts, Term term) const {
    double all = 0;
    for (std::size_t p = 0; p < parts; ++p) {
      double part = 0;
      for (std::size_t k = count * p / parts; k < count * (p + 1) / parts; ++k) part += term(k);
      all = p == 0 ? round_(part) : round_(all + round_(part));
    }
    return all;
  }

  double microbatch(std::uint64_t first, Gradients& gradients) const {
    const std::size_t rows = shape_.rows, last = layers_.size() - 1;
    const std::size_t width = layers_[0].weight.size() / layers_[0].bias.size();
    const VectorTask task{training_.numbers.seed, static_cast<std::int64_t>(width),
                          static_cast<std::int64_t>(layers_[last].bias.size())};
    std::vector<Numbers> x(layers_.size() + 1);
    for (std::size_t r = 0; r < rows; ++r)
      for (const float number : task.vector(first + r))
        x[0].push_back(round_(static_cast<double>(number)));
    for (std::size_t l = 0; l <= last; ++l) {
      const Layer& layer = layers_[l];
      const std::size_t out = layer.bias.size(), in = layer.weight.size() / out;
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t o = 0; o < out; ++o) {
          const double y = sum(in, l % 2 == 1 ? shape_.tensor : 1, [&](std::size_t i) {
            return x[l][r * in + i] * layer.weight16[i * out + o];
          });
          const double biased = round_(y + layer.bias16[o]);
          x[l + 1].push_back(l == last ? biased : std::max(biased, 0.0));
        }
    }
    double loss = 0;
    Numbers dy(x[last + 1].size());
    for (std::size_t r = 0; r < rows; ++r)
      loss += loss_of(task, first + r, std::span{x[last + 1]}.subspan(r * dy.size() / rows),
                      std::span{dy}.subspan(r * dy.size() / rows, dy.size() / rows));
    for (std::size_t l = last + 1; l-- > 0;) dy = backward(l, x[l], x[l + 1], dy, gradients);
    return loss;
  }

  double loss_of(const VectorTask& task, std::uint64_t sample, std::span<const double> logits,
                 std::span<double> gradient) const {
    const auto label = static_cast<std::size_t>(task.sample(sample).label);
    double all = 0;
    for (std::size_t c = 0; c < gradient.size(); ++c) all += std::exp(logits[c]);
    for (std::size_t c = 0; c < gradient.size(); ++c)
      gradient[c] = round_((std::exp(logits[c]) / all - (c == label ? 1 : 0)) * scale_ /
                           static_cast<double>(global()));
    return std::log(all) - logits[label];
  }

  Numbers backward(std::size_t l, const Numbers& x, const Numbers& y, Numbers dy,
                   Gradients& gradients) const {
    const Layer& layer = layers_[l];
    const std::size_t rows = shape_.rows, out = layer.bias.size(), in = layer.weight.size() / out;
    if (l + 1 < layers_.size())
      for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = y[i] > 0 ? dy[i] : 0;
    for (std::size_t i = 0; i < in; ++i)
      for (std::size_t o = 0; o < out; ++o) {
        double g = 0;
        for (std::size_t r = 0; r < rows; ++r) g += x[r * in + i] * dy[r * out + o];
        double& all = gradients[2 * l][i * out + o];
        all = gradients_in_(all + (how().autocast ? round_(g) : g));
      }
    for (std::size_t o = 0; o < out; ++o) {
      double g = 0;
      for (std::size_t r = 0; r < rows; ++r) g += dy[r * out + o];
      gradients[2 * l + 1][o] = gradients_in_(gradients[2 * l + 1][o] + g);
    }
    Numbers dx;
    for (std::size_t r = 0; r < rows && l > 0; ++r)
      for (std::size_t i = 0; i < in; ++i)
        dx.push_back(sum(out, l % 2 == 0 ? shape_.tensor : 1, [&](std::size_t o) {
          return dy[r * out + o] * layer.weight16[i * out + o];
        }));
    return dx;
  }

  // Momentum, on masters, unless something overflowed.
  void update(const Gradients& gradients) {
    bool finite = true;
    for (const Numbers& tensor : gradients)
      for (const double g : tensor) finite = finite && std::isfinite(g);
    const bool scales = how().loss_scaling == LossScaling::dynamic;
    last_scale_ = finite || !scales ? scale_ : 0;
    for (std::size_t t = 0; t < gradients.size() && (finite || !scales); ++t) {
      Layer& layer = layers_[t / 2];
      Numbers& w = t % 2 == 0 ? layer.weight : layer.bias;
      Numbers& velocity = t % 2 == 0 ? layer.weight_velocity : layer.bias_velocity;
      for (std::size_t i = 0; i < w.size(); ++i) {
        velocity[i] = training_.numbers.momentum * velocity[i] + gradients[t][i] / scale_;
        w[i] -= training_.numbers.learning_rate * velocity[i];
      }
    }
    if (!scales) return;
    good_steps_ = finite ? good_steps_ + 1 : 0;
    if (!finite) scale_ = std::max(1.0, scale_ / 2);
    if (good_steps_ < how().loss_scale_window) return;
    scale_ = std::min(0x1p+24, 2 * scale_);
    good_steps_ = 0;
  }

  const SmallTraining& training_;
  Shape shape_;
  PlainFormat round_, gradients_in_;
  double scale_, last_scale_ = 0;
  std::size_t good_steps_ = 0;
  std::vector<Layer> layers_;
  std::vector<std::string> names_;
};

}  // namespace rehearse
