// A module of a convolutional network on one rank: convolutions as implicit matrix products, and
// the kernels between them, which only move memory. What is kept is what PyTorch's autograd saves:
// a tensor that several operators want is there once; ReLU works in place.
//
// With context ranks every image is cut in space: each rank has a strip of its rows (the longest
// counts), and operators that look over the edge of a strip get the rows beyond it from the
// neighbours (Dryden et al. 2019, spatial parallelism).
//
//   rank 0  ▒▒▒▒▒▒▒▒▒▒      a 3x3 convolution: one row up, one row down, forward; and their
//           ──┬─▲─────      gradients the other way. Weights are whole everywhere, and their
//   rank 1  ▒▒▼▒┴▒▒▒▒▒      gradients are summed over dp x cp.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/assert.hpp"
#include "strategies/layers/plain_pieces.hpp"

namespace rehearse {

namespace {

// Of the forward pass of one image.
double product_flops(const ImageShape& input, const ImageOp& op) {
  if (op.kind == ImageOpKind::fully_connected)
    return 2.0 * static_cast<double>(input.size() * op.output.channels);
  if (op.kind != ImageOpKind::convolution) return 0;
  return 2.0 * static_cast<double>(op.output.size()) *
         static_cast<double>(input.channels * op.kernel_height * op.kernel_width);
}

/// What one of `ranks` has of a module: every tensor's longest strip.
ImageModule strip_of(ImageModule module, std::int64_t ranks) {
  const auto cut = [&](ImageShape& shape) { shape.height = (shape.height + ranks - 1) / ranks; };
  cut(module.input);
  for (ImageOp& op : module.ops) cut(op.output);
  return module;
}

class ModuleWriter {
 public:
  /// `strip` is what this rank has of `whole`.
  ModuleWriter(const ImageModule& strip, const ImageModule& whole, const Sharding& how,
               LayerPieces& pieces)
      : module_{strip},
        whole_{whole},
        strips_{how.context},
        batch_{how.micro_batch},
        dropout_{how.dropout},
        numbers_{how},
        forward_{how, pieces.forward},
        backward_{how, pieces.backward} {}

  void forward(const ImageOp& op);
  void backward(const ImageOp& op);
  /// The gradients of a tensor that goes several ways are added up.
  void join(std::uint32_t tensor, std::int64_t ways);

 private:
  std::int64_t in(const ImageOp& op) const {
    return batch_ * module_.tensor(op.inputs.front()).size();
  }
  std::int64_t out(const ImageOp& op) const { return batch_ * op.output.size(); }
  std::int64_t taps_of(const ImageOp& op) const {
    return module_.tensor(op.inputs.front()).channels * op.kernel_height * op.kernel_width;
  }
  bool needs_gradient(const ImageOp& op) const {
    return !module_.takes_images || op.inputs.front() != 0;
  }
  void convolution_forward(const ImageOp& op);
  void convolution_backward(const ImageOp& op);
  Product connected(const ImageOp& op) const {
    return {"fc", batch_, whole_.tensor(op.inputs.front()).size(), op.output.channels, op.bias};
  }
  const ImageOp& whole(const ImageOp& op) const {
    return whole_.ops[static_cast<std::size_t>(&op - module_.ops.data())];
  }
  double flops_of(const ImageOp& op) const {
    return product_flops(module_.tensor(op.inputs.front()), op);
  }
  void rows_over_the_edge(const ImageOp& op, PieceWriter& writer, std::string_view name) const;
  void join_strips(const ImageOp& op);
  Piece product(std::string name, const ImageOp& op, const Gemm& gemm, std::int64_t bytes) const;

  const ImageModule &module_, &whole_;
  std::int64_t strips_;
  std::int64_t batch_;
  bool dropout_;
  Numbers numbers_;
  PieceWriter forward_, backward_;
};

std::string name_of(const ImageOp& op, std::string_view suffix) {
  return fmt::format("conv{}x{}{}{}", op.kernel_height, op.kernel_width,
                     op.stride > 1 ? fmt::format("/{}", op.stride) : "", suffix);
}

// The FLOPs are the same in all three; the implicit product's shape tells how tiles fill it.
Piece ModuleWriter::product(std::string name, const ImageOp& op, const Gemm& gemm,
                            std::int64_t bytes) const {
  const Compute work{.flops = Flops{static_cast<double>(batch_) * flops_of(op)},
                     .traffic = Bytes{bytes},
                     .gemm = gemm,
                     .math = numbers_.math};
  const std::int64_t weights = op.output.channels * taps_of(op);
  return {.name = std::move(name), .work = work, .weights = weights};
}

// It reads the image, not the matrix that the image stands for.
void ModuleWriter::convolution_forward(const ImageOp& op) {
  const std::int64_t taps = taps_of(op), channels = op.output.channels;
  const std::int64_t pixels = batch_ * op.output.height * op.output.width;
  const std::int64_t bytes =
      (in(op) + channels * taps) * numbers_.operand + out(op) * numbers_.activation;
  rows_over_the_edge(op, forward_, name_of(op, ".rows"));
  forward_.kernel(product(name_of(op, ""), op, {pixels, channels, taps}, bytes));
}

void ModuleWriter::convolution_backward(const ImageOp& op) {
  const ImageShape& input = module_.tensor(op.inputs.front());
  const std::int64_t taps = taps_of(op), channels = op.output.channels;
  const std::int64_t pixels = batch_ * op.output.height * op.output.width;
  if (needs_gradient(op)) {
    // With a stride each pixel of the input is under that many fewer taps.
    const std::int64_t under =
        std::max<std::int64_t>(1, op.kernel_height * op.kernel_width / (op.stride * op.stride));
    const Gemm gemm{batch_ * input.height * input.width, input.channels, channels * under};
    backward_.kernel(
        product(name_of(op, ".dgrad"), op, gemm,
                (out(op) + channels * taps) * numbers_.operand + in(op)*numbers_.activation));
    rows_over_the_edge(op, backward_, name_of(op, ".rows_grad"));
  }
  Piece wgrad =
      product(name_of(op, ".wgrad"), op, {channels, taps, pixels},
              (in(op) + out(op)) * numbers_.operand + channels * taps * 2 * numbers_.gradient);
  wgrad.of_weights = true;
  backward_.kernel(std::move(wgrad));
  if (!op.bias) return;
  backward_.sweep("conv.bias_grad", out(op), static_cast<double>(out(op)),
                  2 * channels * numbers_.gradient);
  backward_.of_weights();
}

// Of k rows under a kernel that moves on by s, k - s lie beyond a strip: half of them on each side.
void ModuleWriter::rows_over_the_edge(const ImageOp& op, PieceWriter& writer,
                                      std::string_view name) const {
  const ImageShape& all = whole_.tensor(op.inputs.front());
  const std::int64_t rows = op.kernel_height - op.stride;
  if (strips_ == 1 || rows <= 0 || all.height == 1 || whole(op).output.height == 1) return;
  const std::int64_t row = batch_ * all.channels * all.width * numbers_.activation;
  for (const auto& [side, count] : {std::pair{"up", rows / 2}, std::pair{"down", rows - rows / 2}})
    if (count > 0)
      writer.exchange(fmt::format("{}.{}", name, side), CollectiveKind::send_recv, count * row, 0,
                      Dimension::context);
}

// Where strips end: a mean over the whole image is summed over the ranks, and a product with all
// pixels gathers them.
void ModuleWriter::join_strips(const ImageOp& op) {
  const ImageShape& all = whole_.tensor(op.inputs.front());
  if (strips_ == 1 || all.height == 1) return;
  if (op.kind == ImageOpKind::average_pool && whole(op).output.height == 1)
    forward_.exchange("pool.all_reduce", CollectiveKind::all_reduce, out(op) * numbers_.activation,
                      0, Dimension::context);
  if (op.kind == ImageOpKind::fully_connected)
    forward_.exchange("fc.gather_rows", CollectiveKind::all_gather,
                      batch_ * all.size() * numbers_.activation, 0, Dimension::context);
}

void ModuleWriter::forward(const ImageOp& op) {
  const auto each = static_cast<double>(out(op));
  switch (op.kind) {
    case ImageOpKind::convolution:
      return convolution_forward(op);
    case ImageOpKind::batch_norm:  // reads once for mean and variance, once to normalise
      forward_.sweep("batch_norm", 3 * out(op), 7 * each);
      return forward_.leaves(out(op), Elementwise::ends, false);
    case ImageOpKind::relu:
      forward_.sweep("relu", 2 * out(op), each);
      return forward_.leaves(out(op), Elementwise::whole, true);
    case ImageOpKind::max_pool:  // and PyTorch's indices
      rows_over_the_edge(op, forward_, "max_pool.rows");
      return forward_.sweep("max_pool", in(op) + out(op), static_cast<double>(in(op)), 8 * out(op));
    case ImageOpKind::average_pool:
      rows_over_the_edge(op, forward_, "average_pool.rows");
      forward_.sweep("average_pool", in(op) + out(op), static_cast<double>(in(op)));
      return join_strips(op);
    case ImageOpKind::add:
      forward_.sweep("add", 3 * out(op), each);
      return forward_.leaves(out(op), Elementwise::whole, false);
    case ImageOpKind::concatenate:
      return forward_.sweep("concatenate", 2 * out(op), 0);
    case ImageOpKind::dropout:
      if (dropout_) forward_.sweep("dropout", 2 * out(op), 2 * each, out(op));
      return;
    case ImageOpKind::fully_connected:
      join_strips(op);
      return forward_.forward(connected(op));
    case ImageOpKind::loss:
      return forward_.sweep("loss", out(op), 5 * each, 4 * out(op));
  }
}

void ModuleWriter::backward(const ImageOp& op) {
  const auto each = static_cast<double>(out(op));
  switch (op.kind) {
    case ImageOpKind::convolution:
      return convolution_backward(op);
    case ImageOpKind::batch_norm:  // sums over input and gradient, then both again; weights with it
      return backward_.sweep("batch_norm.grad", 5 * out(op), 12 * each);
    case ImageOpKind::relu:
      backward_.sweep("relu.grad", 3 * out(op), each);
      return backward_.leaves(out(op), Elementwise::whole, true);
    case ImageOpKind::max_pool:
      backward_.sweep("max_pool.grad", in(op) + out(op), each, 8 * out(op));
      return rows_over_the_edge(op, backward_, "max_pool.rows_grad");
    case ImageOpKind::average_pool:
      backward_.sweep("average_pool.grad", in(op) + out(op), static_cast<double>(in(op)));
      return rows_over_the_edge(op, backward_, "average_pool.rows_grad");
    case ImageOpKind::add:  // both sides get the gradient as it is
      return;
    case ImageOpKind::concatenate:
      return backward_.sweep("concatenate.grad", 2 * out(op), 0);
    case ImageOpKind::dropout:
      if (dropout_) backward_.sweep("dropout.grad", 2 * out(op), each, out(op));
      return;
    case ImageOpKind::fully_connected:
      if (needs_gradient(op)) backward_.input_gradient(connected(op));
      return backward_.weight_gradient(connected(op));
    case ImageOpKind::loss:
      return backward_.sweep("loss.grad", out(op), 2 * each, 4 * out(op));
  }
}

void ModuleWriter::join(std::uint32_t tensor, std::int64_t ways) {
  const std::int64_t numbers = batch_ * module_.tensor(tensor).size();
  for (std::int64_t i = 1; i < ways; ++i) {
    backward_.sweep("join.grad", 3 * numbers, static_cast<double>(numbers));
    backward_.leaves(numbers, Elementwise::whole, false);
  }
}

// By tensor: how many operators take it, and the next module what goes out.
std::vector<std::int64_t> ways_of(const ImageModule& module) {
  std::vector<std::int64_t> ways(module.ops.size() + 1, 0);
  for (const ImageOp& op : module.ops)
    for (const std::uint32_t tensor : op.inputs) ++ways[tensor];
  ++ways[module.output];
  return ways;
}

// Which tensors backward kernels read. What comes in is the layer's input; what goes out is the
// next layer's.
Activations kept_by(const ImageModule& module, const Sharding& how) {
  const Numbers numbers{how};
  enum class Saved : std::uint8_t { no, norm, other };
  std::vector<Saved> saved(module.ops.size() + 1, Saved::no);
  std::int64_t other = 0, loss = 0;  // bytes beside whole tensors: indices, masks, fp32
  for (std::uint32_t i = 0; i < module.ops.size(); ++i) {
    const ImageOp& op = module.ops[i];
    const std::int64_t size = how.micro_batch * op.output.size();
    switch (op.kind) {
      case ImageOpKind::batch_norm:
        saved[op.inputs.front()] = Saved::norm;
        break;
      case ImageOpKind::relu:
        saved[i + 1] = Saved::other;
        break;
      case ImageOpKind::dropout:
        other += how.dropout ? size : 0;
        break;
      case ImageOpKind::loss:
        loss += 4 * size;
        break;
      case ImageOpKind::max_pool:
        other += 8 * size;
        [[fallthrough]];
      case ImageOpKind::convolution:
      case ImageOpKind::average_pool:
      case ImageOpKind::fully_connected:
        saved[op.inputs.front()] = Saved::other;
        break;
      case ImageOpKind::add:
      case ImageOpKind::concatenate:
        break;
    }
  }
  saved[0] = Saved::no;
  saved[module.output] = Saved::no;
  std::int64_t norm = 0;
  for (std::uint32_t tensor = 1; tensor < saved.size(); ++tensor) {
    const std::int64_t bytes = how.micro_batch * module.tensor(tensor).size() * numbers.activation;
    if (saved[tensor] == Saved::norm) norm += bytes;
    if (saved[tensor] == Saved::other) other += bytes;
  }
  // A module that hands on what came in leaves it to the next one to keep.
  const std::int64_t input =
      module.output == 0 ? 0 : how.micro_batch * module.input.size() * numbers.activation;
  return {Bytes{input}, Bytes{}, Bytes{other}, Bytes{norm}, Bytes{loss}};
}

}  // namespace

LayerPieces image_pieces(const ImageModule& whole, const Sharding& how) {
  ASSERT(how.tensor == 1);
  LayerPieces pieces{.name = "module"};
  const auto bytes = [&](const ImageShape& shape) {
    return Bytes{how.micro_batch * shape.size() * Numbers{how}.activation};
  };
  const ImageModule module = strip_of(whole, how.context);
  ModuleWriter writer{module, whole, how, pieces};
  const std::vector<std::int64_t> ways = ways_of(module);
  double flops = 0;
  for (const ImageOp& op : whole.ops) flops += product_flops(whole.tensor(op.inputs.front()), op);
  for (const ImageOp& op : module.ops) {
    writer.forward(op);
    if (op.kind == ImageOpKind::loss) pieces.recomputes = false;
  }
  for (auto i = static_cast<std::uint32_t>(module.ops.size()); i-- > 0;) {
    writer.join(i + 1, ways[i + 1]);
    writer.backward(module.ops[i]);
  }
  if (!module.takes_images) writer.join(0, ways[0]);
  pieces.parameters = parameters_of(whole);
  pieces.kept = kept_by(module, how);
  // A product with all pixels keeps what it has gathered.
  for (const ImageOp& op : whole.ops)
    if (op.kind == ImageOpKind::fully_connected)
      pieces.kept[static_cast<std::size_t>(ActivationKind::mlp)] +=
          bytes(whole.tensor(op.inputs.front())) - bytes(module.tensor(op.inputs.front()));
  pieces.kept_selective = pieces.kept;
  pieces.input = bytes(module.input);
  pieces.output = bytes(module.tensor(module.output));
  pieces.model_flops = Flops{3 * flops * static_cast<double>(how.micro_batch)};
  return pieces;
}

}  // namespace rehearse
