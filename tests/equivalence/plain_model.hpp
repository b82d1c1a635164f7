// The models once more, as plain as can be: scalars in fp64 on a tape that
// knows the derivative of each of its few operations. Nothing here is shared
// with kernels or strategies but the data.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/workload/workload.hpp"
#include "strategies/binding/training_data.hpp"

namespace rehearse {

class ScalarTape {
 public:
  using Scalar = std::size_t;
  using Vector = std::vector<Scalar>;

  Scalar leaf(double value) { return node(value, 0, 0, 0, 0); }
  double value(Scalar a) const { return nodes_[a].value; }
  Scalar add(Scalar a, Scalar b) { return node(value(a) + value(b), a, 1, b, 1); }
  Scalar subtract(Scalar a, Scalar b) { return node(value(a) - value(b), a, 1, b, -1); }
  Scalar multiply(Scalar a, Scalar b) {
    return node(value(a) * value(b), a, value(b), b, value(a));
  }
  Scalar times(Scalar a, double factor) { return node(value(a) * factor, a, factor, 0, 0); }
  Scalar plus(Scalar a, double term) { return node(value(a) + term, a, 1, 0, 0); }
  Scalar power(Scalar a, double exponent) {
    return node(std::pow(value(a), exponent), a, exponent * std::pow(value(a), exponent - 1), 0, 0);
  }
  Scalar exp(Scalar a) { return node(std::exp(value(a)), a, std::exp(value(a)), 0, 0); }
  Scalar log(Scalar a) { return node(std::log(value(a)), a, 1 / value(a), 0, 0); }
  Scalar tanh(Scalar a) {
    const double t = std::tanh(value(a));
    return node(t, a, 1 - t * t, 0, 0);
  }
  Scalar relu(Scalar a) { return node(std::max(value(a), 0.0), a, value(a) > 0 ? 1 : 0, 0, 0); }
  Scalar sum(const Vector& v) {
    Scalar total = leaf(0);
    for (const Scalar a : v) total = add(total, a);
    return total;
  }
  Scalar dot(const Vector& a, const Vector& b) {
    Scalar total = leaf(0);
    for (std::size_t i = 0; i < a.size(); ++i) total = add(total, multiply(a[i], b[i]));
    return total;
  }

  std::vector<double> gradients(Scalar root) const {
    std::vector<double> slopes(nodes_.size());
    slopes[root] = 1;
    for (std::size_t i = root + 1; i-- > 0;) {
      const Node& n = nodes_[i];
      slopes[n.a] += slopes[i] * n.by_a;
      slopes[n.b] += slopes[i] * n.by_b;
    }
    return slopes;
  }

 private:
  struct Node {
    double value, by_a, by_b;
    Scalar a, b;
  };
  Scalar node(double value, Scalar a, double by_a, Scalar b, double by_b) {
    nodes_.push_back({value, by_a, by_b, a, b});
    return nodes_.size() - 1;
  }
  std::vector<Node> nodes_;
};

/// Which elements fall: of a layer's mask number `place` (0 embedding, 1 attention, 2 MLP, 3
/// probabilities), and what those that stay are multiplied by.
struct PlainMasks {
  std::function<bool(std::size_t layer, std::size_t place, std::size_t element)> drops;
  double kept = 1;
  bool of_probabilities = false;
};

/// The loss of one sample, summed over its tokens.
class PlainModel {
 public:
  using Scalar = ScalarTape::Scalar;
  using Vector = ScalarTape::Vector;
  using Rows = std::vector<Vector>;

  PlainModel(const Workload& workload, const std::map<std::string, std::vector<Scalar>>& parameters,
             ScalarTape& tape, PlainMasks masks = {})
      : workload_{workload}, parameters_{parameters}, t_{tape}, masks_{std::move(masks)} {}

  Scalar mlp(const VectorSample& sample) {
    Vector x;
    for (const float number : sample.x) x.push_back(t_.leaf(static_cast<double>(number)));
    for (const Layer& layer : workload_.layers) {
      const bool last = &layer == &workload_.layers.back();
      x = linear(x, layer.name + " weight", layer.name + " bias");
      for (Scalar& number : x) number = last ? number : t_.relu(number);
    }
    return cross_entropy(x, sample.label);
  }

  Scalar transformer(const std::vector<std::int32_t>& tokens) {
    const Transformer& m = workload_.transformer;
    const std::string first = workload_.layers.front().name;
    Rows x;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      x.push_back(row(first + " table", static_cast<std::size_t>(tokens[i])));
      if (m.learned_positions) x[i] = sum(x[i], row(first + " positions", i));
      x[i] = dropped(x[i], 0, i * x[i].size());
    }
    Rows out;
    for (const Layer& layer : workload_.layers) {
      layer_ = static_cast<std::size_t>(&layer - workload_.layers.data());
      if (layer.kind == LayerKind::block) block(layer.name + " ", x);
      if (layer.kind == LayerKind::final_norm)
        for (Vector& token : x) token = norm(token, layer.name + " norm");
    }
    const std::string table = (m.tied ? first : workload_.layers.back().name) + " table";
    Scalar loss = t_.leaf(0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      Vector logits;
      for (std::int64_t w = 0; w < m.vocabulary; ++w)
        logits.push_back(t_.dot(x[i], row(table, static_cast<std::size_t>(w))));
      loss = t_.add(loss, cross_entropy(logits, tokens[i + 1]));
    }
    return loss;
  }

 private:
  Vector row(const std::string& name, std::size_t r) const {
    const auto width = static_cast<std::size_t>(workload_.transformer.hidden);
    const std::vector<Scalar>& all = parameters_.at(name);
    return {all.begin() + static_cast<std::ptrdiff_t>(r * width),
            all.begin() + static_cast<std::ptrdiff_t>((r + 1) * width)};
  }

  Vector dropped(const Vector& x, std::size_t place, std::size_t first) {
    if (!masks_.drops) return x;
    Vector y;
    for (std::size_t i = 0; i < x.size(); ++i)
      y.push_back(t_.times(x[i], masks_.drops(layer_, place, first + i) ? 0 : masks_.kept));
    return y;
  }

  Vector sum(const Vector& a, const Vector& b) {
    Vector y;
    for (std::size_t i = 0; i < a.size(); ++i) y.push_back(t_.add(a[i], b[i]));
    return y;
  }

  /// x W, and the bias if there is one.
  Vector linear(const Vector& x, const std::string& weight, const std::string& bias) {
    const std::vector<Scalar>& w = parameters_.at(weight);
    const std::size_t outputs = w.size() / x.size();
    Vector y;
    for (std::size_t o = 0; o < outputs; ++o) {
      Vector column;
      for (std::size_t i = 0; i < x.size(); ++i) column.push_back(w[i * outputs + o]);
      y.push_back(t_.dot(x, column));
    }
    const auto found = parameters_.find(bias);
    return found == parameters_.end() ? y : sum(y, found->second);
  }

  Scalar cross_entropy(const Vector& logits, std::int32_t target) {
    Vector powers;
    for (const Scalar x : logits) powers.push_back(t_.exp(x));
    return t_.subtract(t_.log(t_.sum(powers)), logits[static_cast<std::size_t>(target)]);
  }

  Vector norm(const Vector& x, const std::string& name) {
    const double count = static_cast<double>(x.size());
    const bool is_layer = workload_.transformer.norm == Norm::layer;
    const Scalar mean = t_.times(t_.sum(x), is_layer ? 1 / count : 0);
    Vector apart, squares;
    for (const Scalar number : x) apart.push_back(t_.subtract(number, mean));
    for (const Scalar number : apart) squares.push_back(t_.multiply(number, number));
    const Scalar rate = t_.power(t_.plus(t_.times(t_.sum(squares), 1 / count), 1e-5), -0.5);
    Vector y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y.push_back(t_.multiply(t_.multiply(apart[i], rate), parameters_.at(name + ".weight")[i]));
      if (is_layer) y[i] = t_.add(y[i], parameters_.at(name + ".bias")[i]);
    }
    return y;
  }

  void turn(Vector& x, std::size_t position) {
    const auto head = static_cast<std::size_t>(workload_.transformer.head_size), half = head / 2;
    for (std::size_t h = 0; h < x.size(); h += head)
      for (std::size_t j = 0; j < half; ++j) {
        const double angle =
            static_cast<double>(position) /
            std::pow(10000.0, static_cast<double>(2 * j) / static_cast<double>(head));
        const Scalar a = x[h + j], b = x[h + j + half];
        x[h + j] = t_.subtract(t_.times(a, std::cos(angle)), t_.times(b, std::sin(angle)));
        x[h + j + half] = t_.add(t_.times(a, std::sin(angle)), t_.times(b, std::cos(angle)));
      }
  }

  Vector attend(const Vector& query, const Rows& keys, const Rows& values, std::size_t seen) {
    const Transformer& m = workload_.transformer;
    const auto head = static_cast<std::size_t>(m.head_size);
    const auto heads = static_cast<std::size_t>(m.heads);
    const std::size_t shared = heads / static_cast<std::size_t>(m.kv_heads);
    Vector context;
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t k = h / shared * head;
      Vector powers;
      for (std::size_t j = 0; j < seen; ++j) {
        Scalar score = t_.leaf(0);
        for (std::size_t i = 0; i < head; ++i)
          score = t_.add(score, t_.multiply(query[h * head + i], keys[j][k + i]));
        powers.push_back(t_.exp(t_.times(score, 1 / std::sqrt(static_cast<double>(head)))));
      }
      const Scalar all = t_.power(t_.sum(powers), -1);
      if (masks_.of_probabilities)
        powers = dropped(powers, 3, (h * keys.size() + seen - 1) * keys.size());
      for (std::size_t i = 0; i < head; ++i) {
        Scalar number = t_.leaf(0);
        for (std::size_t j = 0; j < seen; ++j)
          number = t_.add(number, t_.multiply(t_.multiply(powers[j], all), values[j][k + i]));
        context.push_back(number);
      }
    }
    return context;
  }

  Scalar gelu(Scalar x) {
    const Scalar cube = t_.multiply(x, t_.multiply(x, x));
    const Scalar inner =
        t_.times(t_.add(x, t_.times(cube, 0.044715)), std::sqrt(2 / std::acos(-1.0)));
    return t_.times(t_.multiply(x, t_.plus(t_.tanh(inner), 1)), 0.5);
  }

  Scalar silu(Scalar x) {
    return t_.multiply(x, t_.power(t_.plus(t_.exp(t_.times(x, -1)), 1), -1));
  }

  void block(const std::string& name, Rows& x) {
    const Transformer& m = workload_.transformer;
    const auto product = [&](const Vector& v, const std::string& which) {
      return linear(v, name + which, name + which + ".bias");
    };
    Rows queries, keys, values;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Vector normed = norm(x[i], name + "attention.norm");
      queries.push_back(product(normed, "attention.query"));
      keys.push_back(product(normed, "attention.key"));
      values.push_back(product(normed, "attention.value"));
      if (m.learned_positions) continue;
      turn(queries[i], i);
      turn(keys[i], i);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Vector context = attend(queries[i], keys, values, i + 1);
      x[i] = sum(x[i], dropped(product(context, "attention.out"), 1, i * x[i].size()));
      const Vector normed = norm(x[i], name + "mlp.norm");
      Vector up = product(normed, "mlp.up");
      const Vector gate = m.gated ? product(normed, "mlp.gate") : Vector{};
      for (std::size_t f = 0; f < up.size(); ++f)
        up[f] = m.gated ? t_.multiply(silu(gate[f]), up[f]) : gelu(up[f]);
      x[i] = sum(x[i], dropped(product(up, "mlp.down"), 2, i * x[i].size()));
    }
  }

  const Workload& workload_;
  const std::map<std::string, std::vector<Scalar>>& parameters_;
  ScalarTape& t_;
  PlainMasks masks_;
  std::size_t layer_ = 0;
};

}  // namespace rehearse
