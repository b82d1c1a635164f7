// The ends of a transformer: embedding, last norm, head and loss. The
// vocabulary is cut over the tensor ranks: each looks up and scores its own
// words.
#include <algorithm>

#include "sim/base/assert.hpp"
#include "strategies/binding/site.hpp"

namespace rehearse {

namespace {

enum class NormPart : std::uint8_t { forward, input, weights };

void bind_norm_kernel(PieceSite& site, const NormSlices& norm, NormPart part) {
  const std::int64_t width = site.transformer().hidden, rows = site.count(norm.x) / width;
  const std::string name{norm.name};
  const Slice rate = site.exact(name + ".rate", rows), mean = site.exact(name + ".mean", rows);
  const CallList::Sizes sizes{rows, width};
  constexpr CallList::Numbers epsilon{1e-5};
  const std::string weight = name + ".weight", bias = name + ".bias";
  const bool is_layer = site.transformer().norm == Norm::layer;
  if (part == NormPart::forward && is_layer)
    site.calls.add(Kernel::layer_norm,
                   {norm.x, site.parameter(weight), site.parameter(bias), norm.y, mean, rate},
                   sizes, epsilon);
  else if (part == NormPart::forward)
    site.calls.add(Kernel::rms_norm, {norm.x, site.parameter(weight), norm.y, rate}, sizes,
                   epsilon);
  else if (part == NormPart::input && is_layer)
    site.calls.add(Kernel::layer_norm_backward,
                   {norm.y_gradient, norm.x, site.parameter(weight), mean, rate, norm.x_gradient},
                   sizes);
  else if (part == NormPart::input)
    site.calls.add(Kernel::rms_norm_backward,
                   {norm.y_gradient, norm.x, site.parameter(weight), rate, norm.x_gradient}, sizes);
  else if (is_layer)
    site.calls.add(
        Kernel::layer_norm_weights,
        {norm.y_gradient, norm.x, mean, rate, site.gradient(weight), site.gradient(bias)}, sizes);
  else
    site.calls.add(Kernel::rms_norm_weights, {norm.y_gradient, norm.x, rate, site.gradient(weight)},
                   sizes);
}

}  // namespace

void bind_norm(PieceSite& site, const NormSlices& norm, std::string_view rest) {
  const bool backward = rest.starts_with(".grad");
  if (rest.ends_with(".cast")) return site.widen(backward ? norm.y_gradient : norm.x);
  if (rest.ends_with(".cast_back")) return site.narrow(backward ? norm.x_gradient : norm.y);
  ASSERT(rest.empty() || rest == ".grad" || rest == ".wgrad");
  NormSlices wide = norm;
  wide.x = site.widened(norm.x);
  if (rest == ".wgrad") return bind_norm_kernel(site, wide, NormPart::weights);
  wide.y = site.widened(norm.y);
  wide.x_gradient = site.widened(norm.x_gradient);
  wide.y_gradient = site.widened(norm.y_gradient);
  bind_norm_kernel(site, wide, backward ? NormPart::input : NormPart::forward);
}

namespace {

class End {
 public:
  explicit End(PieceSite& site)
      : site_{site},
        m_{site.transformer()},
        rows_{site.how().micro_batch * site.how().seq_length},
        wide_{rows_ * m_.hidden},
        words_{padded_vocabulary(m_.vocabulary, site.how().tensor) / site.how().tensor},
        first_{static_cast<std::int64_t>(site.tensor_place()) * words_} {}

  void embedding(std::string_view piece);
  void final_norm(std::string_view piece);
  void head(std::string_view piece);
  Slice exchange(std::string_view piece);

 private:
  Slice row_numbers(std::string_view name) { return site_.exact(name, rows_); }
  Slice logits(std::string_view name) { return site_.tensor(name, rows_ * words_); }
  Slice probabilities() { return site_.exact("probabilities", rows_ * words_); }
  void loss(std::string_view piece);

  PieceSite& site_;
  const Transformer& m_;
  std::int64_t rows_, wide_, words_, first_;
};

void End::embedding(std::string_view piece) {
  const Slice y = site_.stream(1, wide_), dy = site_.stream_gradient(1, wide_);
  const Slice tokens = site_.fed("tokens", rows_);
  const CallList::Sizes table{words_, m_.hidden, first_};
  const CallList::Sizes positions{rows_, m_.hidden, site_.how().seq_length};
  if (piece == "embedding") {
    site_.calls.add(Kernel::embedding, {site_.parameter("table"), tokens, y}, table);
  } else if (piece == "embedding.positions") {
    site_.calls.add(Kernel::add_positions, {site_.parameter("positions"), y}, positions);
  } else if (piece == "embedding.dropout") {
    site_.drop_rows(site_.own(y), site_.own(y), 0);
  } else if (piece == "embedding.dropout.grad") {
    site_.drop_rows(site_.own(dy), site_.own(dy), 0);
  } else if (piece == "embedding.positions.wgrad") {
    site_.calls.add(Kernel::positions_backward, {dy, site_.gradient("positions")}, positions);
  } else {
    ASSERT(piece == "embedding.wgrad");
    site_.calls.add(Kernel::embedding_backward, {dy, tokens, site_.gradient("table")}, table);
  }
}

void End::final_norm(std::string_view piece) {
  const NormSlices norm{
      "norm", site_.own(site_.stream(0, wide_)), site_.own(site_.stream(1, wide_)),
      site_.own(site_.stream_gradient(0, wide_)), site_.own(site_.stream_gradient(1, wide_))};
  ASSERT(piece.starts_with("final_norm"));
  bind_norm(site_, norm, piece.substr(std::string_view{"final_norm"}.size()));
}

void End::loss(std::string_view piece) {
  const std::int64_t valid = std::clamp<std::int64_t>(m_.vocabulary - first_, 0, words_);
  const CallList::Sizes sizes{rows_, words_, first_, valid};
  const Slice x = logits("logits"), targets = site_.fed("targets", rows_);
  const Slice largest = row_numbers("loss.max"), target = row_numbers("loss.target"),
              sum = row_numbers("loss.sum");
  if (piece == "loss.max")
    site_.calls.add(Kernel::vocabulary_max, {x, largest}, sizes);
  else if (piece == "loss.exp_sum")
    site_.calls.add(Kernel::vocabulary_sums, {x, targets, largest, target, sum}, sizes);
  else if (piece == "loss.scale")
    site_.scale_loss();
  else if (piece == "loss.softmax")
    site_.calls.add(Kernel::vocabulary_softmax,
                    {x, largest, target, sum, probabilities(), site_.bytes("loss", 8)}, sizes);
  else
    site_.calls.add(Kernel::vocabulary_gradient,
                    {probabilities(), targets, site_.loss_state(), logits("logits.gradient")},
                    sizes, {site_.sample_weight()});
}

// The table has a row for each word: logits = x table'.
void End::head(std::string_view piece) {
  if (piece.starts_with("loss.")) return loss(piece);
  site_.use_table_of_head();
  const Slice x = site_.stream(0, wide_), table = site_.factor("table");
  const Slice gradient = logits("logits.gradient");
  if (piece == "head.logits.weight_cast") {
    site_.cast_weight("table");
  } else if (piece == "head.logits.wgrad.cast_add") {
    site_.add_gradient("table");
  } else if (piece == "head.logits") {
    site_.calls.add(Kernel::gemm, {x, table, logits("logits")}, {rows_, words_, m_.hidden, 0, 1},
                    {1, 0});
  } else if (piece == "head.logits.dgrad") {
    site_.calls.add(Kernel::gemm, {gradient, table, site_.stream_gradient(0, wide_)},
                    {rows_, m_.hidden, words_}, {1, 0});
  } else {
    ASSERT(piece == "head.logits.wgrad");
    site_.weight_gradient({rows_, words_, m_.hidden}, gradient, x, "table");
  }
}

Slice End::exchange(std::string_view piece) {
  if (piece == "loss.max.all_reduce") return row_numbers("loss.max");
  if (piece == "loss.target.all_reduce") return row_numbers("loss.target");
  if (piece == "loss.sum.all_reduce") return row_numbers("loss.sum");
  if (piece == "embedding.grad.all_gather") return site_.stream_gradient(1, wide_);
  if (piece.starts_with("embedding.")) return site_.stream(1, wide_);
  ASSERT(piece.starts_with("head.logits."));
  const bool gathers = piece.ends_with(".all_gather") || piece.ends_with(".gather_again");
  return gathers ? site_.stream(0, wide_) : site_.stream_gradient(0, wide_);
}

}  // namespace

void bind_end(PieceSite& site, std::string_view piece) {
  End end{site};
  if (site.layer().kind == LayerKind::embedding)
    end.embedding(piece);
  else if (site.layer().kind == LayerKind::final_norm)
    end.final_norm(piece);
  else
    end.head(piece);
}

Slice end_exchange(PieceSite& site, std::string_view piece) { return End{site}.exchange(piece); }

}  // namespace rehearse
