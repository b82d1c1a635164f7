// A transformer block. Its two halves are alike: a norm, products cut by
// columns, something in between, a product cut by rows, the residual sum.
// Tensors are named after the half they are in.
//
//   x ─norm─▶ normed ═[gather]═ qkv ─▶ core ─▶ out ═[reduce]═ residual ─▶
//   middle ─▶ … ─▶ x'
//
// Under sequence parallelism a rank has its own rows of x, normed, out, middle
// and their gradients, and [gather] and [reduce] are in place: own rows are a
// part of the whole tensor.
#include <cmath>

#include "sim/base/assert.hpp"
#include "strategies/binding/site.hpp"
#include "strategies/layers/transformer_pieces.hpp"

namespace rehearse {

namespace {

// A product with one input and several matrices beside each other: queries,
// keys and values.
struct Matrix {
  std::string_view name;
  std::int64_t width = 0;
  Slice y, y_gradient;
};
struct Columns {
  Slice x, x_gradient;
  std::int64_t rows = 0, inputs = 0;
  std::vector<Matrix> matrices;
};

class Block {
 public:
  explicit Block(PieceSite& site)
      : site_{site},
        m_{site.transformer()},
        rows_{site.how().micro_batch * site.how().seq_length},
        wide_{rows_ * m_.hidden},
        heads_{m_.heads / site.how().tensor},
        key_heads_{m_.kv_heads / site.how().tensor},
        ffn_{m_.ffn / site.how().tensor} {}

  void attention(std::string_view piece);
  void mlp(std::string_view piece);
  Slice exchange(std::string_view half, std::string_view piece);

 private:
  Slice wide(std::string_view half, std::string_view name) {
    return site_.tensor(std::string{half}.append(name), wide_);
  }
  // What goes into a half and comes out of it, and the gradients.
  Slice input(std::string_view half) {
    return half == "attention" ? site_.stream(0, wide_) : site_.tensor("middle", wide_);
  }
  Slice output(std::string_view half) {
    return half == "mlp" ? site_.stream(1, wide_) : site_.tensor("middle", wide_);
  }
  Slice input_gradient(std::string_view half) {
    return half == "attention" ? site_.stream_gradient(0, wide_)
                               : site_.tensor("middle.gradient", wide_);
  }
  Slice output_gradient(std::string_view half) {
    return half == "mlp" ? site_.stream_gradient(1, wide_) : site_.tensor("middle.gradient", wide_);
  }

  // Of what the row product gives: with dropout another than that of the sum behind it.
  Slice row_gradient(std::string_view half) {
    return site_.drops() ? wide(half, ".out.gradient") : output_gradient(half);
  }
  static std::int64_t mask_of(std::string_view half) { return half == "attention" ? 1 : 2; }

  bool around(std::string_view half, std::string_view rest, std::string_view bias);
  NormSlices norm(std::string_view half);
  Matrix matrix(std::string_view name, std::int64_t width);
  Columns qkv();
  Columns up();
  bool columns(const Columns& product, std::string_view rest, bool adds_bias);
  bool row(std::string_view half, std::string_view rest, std::string_view weight, const Slice& x,
           const Slice& x_gradient, std::int64_t inputs);
  // What the core of attention reads and writes, whichever kernels it is made of.
  struct Core {
    Slice q, k, v, dq, dk, dv, context, dcontext;
    CallList::Sizes sizes;
    CallList::Numbers scale;
  };
  Core core();
  void flash(bool backward);
  void plain(std::string_view rest);
  void turn(bool back);
  void activation(bool backward);

  PieceSite& site_;
  const Transformer& m_;
  std::int64_t rows_, wide_, heads_, key_heads_, ffn_;
};

NormSlices Block::norm(std::string_view half) {
  return {half == "attention" ? "attention.norm" : "mlp.norm", site_.own(input(half)),
          site_.own(wide(half, ".normed")), site_.own(wide(half, ".norm.input_gradient")),
          site_.own(wide(half, ".normed.gradient"))};
}

// Norms and residual sums.
bool Block::around(std::string_view half, std::string_view rest, std::string_view bias) {
  if (rest.starts_with("norm")) return bind_norm(site_, norm(half), rest.substr(4)), true;
  const Slice y = site_.own(output(half)), y_gradient = site_.own(output_gradient(half));
  const std::int64_t own_rows = site_.count(y) / m_.hidden;
  const Slice out = site_.own(wide(half, ".out"));
  if (rest == "residual" && site_.drops()) {
    if (site_.has(bias))
      site_.calls.add(Kernel::add_bias, {out, site_.parameter(bias), out}, {own_rows, m_.hidden});
    site_.drop_rows(out, out, mask_of(half));
    site_.calls.add(Kernel::add, {site_.own(input(half)), out, y});
  } else if (rest == "residual") {
    site_.calls.add(Kernel::add, {site_.own(input(half)), out, y});
    if (site_.has(bias))
      site_.calls.add(Kernel::add_bias, {y, site_.parameter(bias), y}, {own_rows, m_.hidden});
  } else if (rest == "residual.grad") {
    site_.drop_rows(y_gradient, site_.own(row_gradient(half)), mask_of(half));
  } else if (rest == "residual.bias_grad") {
    site_.calls.add(Kernel::add_column_sums, {site_.own(row_gradient(half)), site_.gradient(bias)},
                    {own_rows, m_.hidden});
  } else if (rest == "residual.join") {
    site_.calls.add(Kernel::add, {site_.own(wide(half, ".norm.input_gradient")), y_gradient,
                                  site_.own(input_gradient(half))});
  } else {
    return false;
  }
  return true;
}

Matrix Block::matrix(std::string_view name, std::int64_t width) {
  const std::string y{name};
  return {name, width, site_.tensor(y + ".y", rows_ * width),
          site_.tensor(y + ".gradient", rows_ * width)};
}

Columns Block::qkv() {
  const std::int64_t queries = heads_ * m_.head_size, keys = key_heads_ * m_.head_size;
  return {wide("attention", ".normed"),
          wide("attention", ".normed.gradient"),
          rows_,
          m_.hidden,
          {matrix("attention.query", queries), matrix("attention.key", keys),
           matrix("attention.value", keys)}};
}

Columns Block::up() {
  Columns product{wide("mlp", ".normed"), wide("mlp", ".normed.gradient"), rows_, m_.hidden, {}};
  if (m_.gated) product.matrices.push_back(matrix("mlp.gate", ffn_));
  product.matrices.push_back(matrix("mlp.up", ffn_));
  return product;
}

bool Block::columns(const Columns& product, std::string_view rest, bool adds_bias) {
  bool adds = false;
  for (const Matrix& matrix : product.matrices) {
    const PieceSite::ProductShape shape{product.rows, product.inputs, matrix.width};
    const std::string bias = std::string{matrix.name} + ".bias";
    if (rest.empty()) {
      site_.forward(shape, product.x, site_.factor(matrix.name), matrix.y);
      if (adds_bias && site_.has(bias))
        site_.calls.add(Kernel::add_bias, {matrix.y, site_.parameter(bias), matrix.y},
                        {product.rows, matrix.width});
    } else if (rest == ".dgrad") {
      site_.input_gradient(shape, matrix.y_gradient, site_.factor(matrix.name), product.x_gradient,
                           std::exchange(adds, true));
    } else if (rest == ".wgrad") {
      site_.weight_gradient(shape, product.x, matrix.y_gradient, matrix.name);
    } else if (rest == ".weight_cast") {
      site_.cast_weight(matrix.name);
    } else if (rest == ".wgrad.cast_add") {
      site_.add_gradient(matrix.name);
    } else if (rest == ".bias_grad") {
      site_.calls.add(Kernel::add_column_sums, {matrix.y_gradient, site_.gradient(bias)},
                      {product.rows, matrix.width});
    } else {
      return false;
    }
  }
  return true;
}

bool Block::row(std::string_view half, std::string_view rest, std::string_view weight,
                const Slice& x, const Slice& x_gradient, std::int64_t inputs) {
  const PieceSite::ProductShape shape{rows_, inputs, m_.hidden};
  const Slice y_gradient = row_gradient(half);
  if (rest.empty())
    site_.forward(shape, x, site_.factor(weight), wide(half, ".out"));
  else if (rest == ".dgrad")
    site_.input_gradient(shape, y_gradient, site_.factor(weight), x_gradient, false);
  else if (rest == ".wgrad")
    site_.weight_gradient(shape, x, y_gradient, weight);
  else if (rest == ".weight_cast")
    site_.cast_weight(weight);
  else if (rest == ".wgrad.cast_add")
    site_.add_gradient(weight);
  else
    return false;
  return true;
}

void Block::turn(bool back) {
  for (const std::string_view name : {"attention.query", "attention.key"}) {
    const std::int64_t width = (name == "attention.query" ? heads_ : key_heads_) * m_.head_size;
    const Matrix plain = matrix(name, width);
    const std::string turned = std::string{name} + ".turned";
    const Slice y = site_.tensor(turned, rows_ * width);
    const Slice y_gradient = site_.tensor(turned + ".gradient", rows_ * width);
    site_.calls.add(Kernel::rotate, {back ? y_gradient : plain.y, back ? plain.y_gradient : y},
                    {rows_, width, m_.head_size, site_.how().seq_length, back ? 1 : 0}, {10000});
  }
}

Block::Core Block::core() {
  const Columns products = qkv();
  const auto find = [&](std::size_t i, std::string_view suffix, const Slice& plain) {
    const Matrix& matrix = products.matrices[i];
    if (m_.learned_positions) return plain;
    return site_.tensor(std::string{matrix.name} + ".turned" + std::string{suffix},
                        rows_ * matrix.width);
  };
  const std::vector<Matrix>& three = products.matrices;
  const std::int64_t numbers = rows_ * heads_ * m_.head_size;
  return {.q = find(0, "", three[0].y),
          .k = find(1, "", three[1].y),
          .v = three[2].y,
          .dq = find(0, ".gradient", three[0].y_gradient),
          .dk = find(1, ".gradient", three[1].y_gradient),
          .dv = three[2].y_gradient,
          // Selective recomputation makes the context again, too.
          .context = site_.recomputed("attention.context", numbers),
          .dcontext = site_.tensor("attention.context.gradient", numbers),
          .sizes = {site_.how().micro_batch, site_.how().seq_length, site_.how().seq_length, heads_,
                    key_heads_, m_.head_size, m_.causal ? 1 : 0},
          .scale = {1 / std::sqrt(static_cast<double>(m_.head_size))}};
}

void Block::flash(bool backward) {
  const Core c = core();
  const Slice sums = site_.recomputed_exact("attention.log_sums", rows_ * heads_);
  if (backward)
    site_.calls.add(Kernel::attention_backward,
                    {c.q, c.k, c.v, c.context, sums, c.dcontext, c.dq, c.dk, c.dv}, c.sizes,
                    c.scale);
  else
    site_.calls.add(Kernel::attention, {c.q, c.k, c.v, c.context, sums}, c.sizes, c.scale);
}

// With the scores of all pairs in memory.
void Block::plain(std::string_view rest) {
  const Core c = core();
  const std::int64_t pairs = rows_ * heads_ * site_.how().seq_length;
  const Slice scores = site_.recomputed("attention.scores", pairs);
  const Slice p = site_.recomputed("attention.softmax", pairs);
  const Slice dscores = site_.tensor("attention.scores.gradient", pairs);
  const Slice dp = site_.tensor("attention.softmax.gradient", pairs);
  // What of the probabilities is left over.
  const Slice left = site_.drops() ? site_.recomputed("attention.dropped", pairs) : p;
  const std::int64_t each = heads_ * site_.how().seq_length * site_.how().seq_length;
  const PieceSite::Mask mask{3, static_cast<std::int64_t>(site_.tensor_place()) * each, each,
                             each * site_.how().tensor};
  const auto call = [&](Kernel kernel, const Slice& a, const Slice& b, const Slice& to) {
    site_.calls.add(kernel, {a, b, to}, c.sizes, c.scale);
  };
  if (rest == "scores")
    call(Kernel::attention_pairs, c.q, c.k, scores);
  else if (rest.starts_with("softmax") && rest.ends_with(".cast"))
    site_.widen(rest == "softmax.cast" ? scores : dp);
  else if (rest.starts_with("softmax") && rest.ends_with(".cast_back"))
    site_.narrow(rest == "softmax.cast_back" ? p : dscores);
  else if (rest == "softmax")
    site_.calls.add(Kernel::attention_softmax, {site_.widened(scores), site_.widened(p)}, c.sizes,
                    c.scale);
  else if (rest == "dropout")
    site_.dropout(p, left, mask);
  else if (rest == "dropout.grad")
    site_.dropout(dp, dp, mask);
  else if (rest == "context")
    call(Kernel::attention_over_keys, left, c.v, c.context);
  else if (rest == "context.dgrad_scores")
    call(Kernel::attention_pairs, c.dcontext, c.v, dp);
  else if (rest == "context.dgrad_values")
    call(Kernel::attention_over_queries, left, c.dcontext, c.dv);
  else if (rest == "softmax.grad")
    call(Kernel::attention_softmax_backward, site_.widened(p), site_.widened(dp),
         site_.widened(dscores));
  else if (rest == "scores.dgrad_queries")
    call(Kernel::attention_over_keys, dscores, c.k, c.dq);
  else
    call(Kernel::attention_over_queries, dscores, c.q, c.dk);
}

void Block::attention(std::string_view piece) {
  const std::string_view rest = piece.substr(std::string_view{"attention."}.size());
  const std::int64_t inputs = heads_ * m_.head_size;
  if (around("attention", rest, "attention.out.bias")) return;
  if (rest.starts_with("qkv")) {
    ASSERT(columns(qkv(), rest.substr(3), true));
  } else if (rest.starts_with("out")) {
    ASSERT(row("attention", rest.substr(3), "attention.out",
               site_.tensor("attention.context", rows_ * inputs),
               site_.tensor("attention.context.gradient", rows_ * inputs), inputs));
  } else if (rest.starts_with("rope")) {
    turn(rest == "rope.grad");
  } else if (rest.starts_with("flash")) {
    flash(rest == "flash.grad");
  } else {
    plain(rest);
  }
}

void Block::activation(bool backward) {
  const Columns product = up();
  const Slice y = site_.tensor("mlp.activated", rows_ * ffn_);
  const Slice dy = site_.tensor("mlp.activated.gradient", rows_ * ffn_);
  const Matrix& first = product.matrices.front();
  const Matrix& last = product.matrices.back();
  if (m_.gated && backward)
    site_.calls.add(Kernel::swiglu_backward,
                    {dy, first.y, last.y, first.y_gradient, last.y_gradient});
  else if (m_.gated)
    site_.calls.add(Kernel::swiglu, {first.y, last.y, y});
  else if (backward)
    site_.calls.add(Kernel::bias_gelu_backward,
                    {dy, last.y, site_.parameter("mlp.up.bias"), last.y_gradient}, {rows_, ffn_});
  else
    site_.calls.add(Kernel::bias_gelu, {last.y, site_.parameter("mlp.up.bias"), y}, {rows_, ffn_});
}

void Block::mlp(std::string_view piece) {
  const std::string_view rest = piece.substr(std::string_view{"mlp."}.size());
  if (around("mlp", rest, "mlp.down.bias")) return;
  if (rest.starts_with("up")) {
    // GELU adds the bias itself.
    ASSERT(columns(up(), rest.substr(2), m_.gated));
  } else if (rest.starts_with("down")) {
    ASSERT(row("mlp", rest.substr(4), "mlp.down", site_.tensor("mlp.activated", rows_ * ffn_),
               site_.tensor("mlp.activated.gradient", rows_ * ffn_), ffn_));
  } else {
    ASSERT(rest.starts_with("gelu") || rest.starts_with("swiglu"));
    activation(rest.ends_with(".grad"));
  }
}

Slice Block::exchange(std::string_view half, std::string_view piece) {
  const bool at_columns = piece.starts_with("attention.qkv") || piece.starts_with("mlp.up");
  const bool gathers = piece.ends_with(".all_gather") || piece.ends_with(".gather_again");
  if (at_columns) return wide(half, gathers ? ".normed" : ".normed.gradient");
  return gathers ? row_gradient(half) : wide(half, ".out");
}

}  // namespace

void bind_block(PieceSite& site, std::string_view piece) {
  Block block{site};
  piece.starts_with("attention.") ? block.attention(piece) : block.mlp(piece);
}

Slice block_exchange(PieceSite& site, std::string_view piece) {
  return Block{site}.exchange(piece.starts_with("attention.") ? "attention" : "mlp", piece);
}

}  // namespace rehearse
