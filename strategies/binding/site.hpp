// Where a piece of a layer is bound: a rank, a layer, a micro-batch. It finds
// the slices of tensors by their names and collects the calls of the op.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/program/kernel_list.hpp"
#include "strategies/binding/buffers.hpp"

namespace rehearse {

/// The kernels of one op and the slices they touch.
class CallList {
 public:
  /// Of slices of `buffers`, which knows their formats; without, all are fp32.
  explicit CallList(const BufferBook* buffers = nullptr) : buffers_{buffers} {}

  using Sizes = std::array<std::int64_t, 8>;
  using Numbers = std::array<double, 4>;

  void add(Kernel kernel, std::initializer_list<Slice> operands, const Sizes& sizes = {},
           const Numbers& numbers = {});
  /// y = x, where one of the two is stored in 16 bits.
  void cast(const Slice& x, const Slice& y, Precision narrow);
  void append(const CallList& more);
  std::span<const Access> accesses() const { return accesses_; }
  std::span<const KernelCall> calls() const { return calls_; }
  bool empty() const { return calls_.empty(); }

 private:
  const BufferBook* buffers_;
  std::vector<Access> accesses_;
  std::vector<KernelCall> calls_;
};

/// What all ops of a step have in common while it is bound.
struct BindingModel {
  const Workload& workload;
  Sharding how;
  ModelLayout layout;
  BufferBook buffers;
  double sample_weight = 1;  // of a token or a sample in the loss: 1 / those of the global batch
  Recompute recompute = Recompute::none;
  bool gradients_apart = false;  // by micro-batch (ZeRO from stage 2 on)
  double dropout = 0;            // probability
  std::uint64_t seed = 1;        // of its masks
  /// Gradients that have been written in this step, by rank: the next ones are
  /// added.
  std::set<std::tuple<Rank, Buffer, std::int64_t>> written;
};

class PieceSite {
 public:
  /// `again`: the layer's forward pass has run again for this. `backward`: not
  /// of the first one.
  struct Where {
    Rank rank{};
    std::size_t tensor_place = 0;
    std::uint32_t layer = 0, microbatch = 0;
    bool again = false, backward = false;
    std::int64_t first_sample = 0;  // of the micro-batch, in the global batch
  };
  PieceSite(BindingModel& model, const Where& where)
      : calls{&model.buffers},
        model_{model},
        rank_{where.rank},
        place_{where.tensor_place},
        layer_{where.layer},
        microbatch_{where.microbatch},
        again_{where.again},
        backward_{where.backward},
        first_sample_{where.first_sample} {}

  const Transformer& transformer() const { return model_.workload.transformer; }
  const Layer& layer() const { return model_.workload.layers[layer_]; }
  const Sharding& how() const { return model_.how; }
  std::size_t tensor_place() const { return place_; }
  double sample_weight() const { return model_.sample_weight; }

  /// A tensor that the layer computes; one of fp32 whatever others are; of bytes.
  Slice tensor(std::string_view name, std::int64_t numbers);
  Slice exact(std::string_view name, std::int64_t numbers);
  Slice bytes(std::string_view name, std::int64_t bytes);
  std::int64_t count(const Slice& numbers) const { return model_.buffers.count(numbers); }
  /// What is fed to the layer: words of 32 bits.
  Slice fed(std::string_view name, std::int64_t words);
  /// As selective recomputation makes it again, and one of fp32.
  Slice recomputed(std::string_view name, std::int64_t numbers);
  Slice recomputed_exact(std::string_view name, std::int64_t numbers);
  /// The rank's StepState: the loss is scaled as it says.
  Slice loss_state() { return model_.buffers.of_rank("state", Bytes{64}); }
  /// The loss of the micro-batch times the scale. Its gradient takes the scale from the state.
  void scale_loss();
  /// What flows into the layer (0) or out of it (1), and its gradient.
  Slice stream(std::uint32_t side, std::int64_t numbers);
  Slice stream_gradient(std::uint32_t side, std::int64_t numbers);
  /// This rank's rows of a tensor that sequence parallelism cuts; else all of
  /// it.
  Slice own(const Slice& whole) const;

  /// Where a mask is: `samples` of the micro-batch have `stride` numbers each in the whole tensor,
  /// of which this rank has `block` from `first` on.
  struct Mask {
    std::int64_t place = 0;  // of the layer: 0 … 3
    std::int64_t first = 0, block = 0, stride = 0;
  };
  bool drops() const { return model_.dropout > 0; }
  void dropout(const Slice& x, const Slice& y, const Mask& mask);
  /// The same in place, for whole rows (or own ones) of a tensor of the model's width.
  void drop_rows(const Slice& x, const Slice& y, std::int64_t place);

  bool has(std::string_view name) const { return model_.layout.has(layer_, name); }
  const ParameterTensor& shape(std::string_view name) const {
    return model_.layout.tensor(layer_, name);
  }
  Slice parameter(std::string_view name);
  /// As products read it: with autocast a 16-bit copy, which cast_weight makes.
  Slice factor(std::string_view name);
  void cast_weight(std::string_view name);
  /// With autocast a product leaves the gradient of a weight in 16 bits; adds that to the whole.
  void add_gradient(std::string_view name);
  /// A copy in fp32 for kernels that autocast gives such (strategies/layers/autocast.hpp), without
  /// it the tensor itself; to the copy, and from it.
  Slice widened(const Slice& numbers);
  void widen(const Slice& numbers);
  void narrow(const Slice& numbers);
  /// Its gradient, ready to be added to: cleared first where this is the step's
  /// first.
  Slice gradient(std::string_view name);
  /// The same for a matrix product: the slice, and beta.
  std::pair<Slice, double> gradient_of_product(std::string_view name);
  /// The table of words, which a tied head shares with the embedding.
  void use_table_of_head() { parameters_of_ = model_.layout.table_of_head(); }

  // Row-major products with weights [inputs, outputs]: y = x W, dx = dy W', dW
  // += x' dy.
  struct ProductShape {
    std::int64_t rows = 0, inputs = 0, outputs = 0;
  };
  void forward(const ProductShape& shape, const Slice& x, const Slice& weight, const Slice& y);
  void input_gradient(const ProductShape& shape, const Slice& dy, const Slice& weight,
                      const Slice& dx, bool adds);
  void weight_gradient(const ProductShape& shape, const Slice& x, const Slice& dy,
                       std::string_view weight);

  CallList calls;

 private:
  BufferBook::Arena recomputed_arena() const;
  bool casts() const {
    const StoredNumbers& stored = model_.buffers.stored();
    return stored.layers != Precision::fp32 && !stored.has_masters();
  }
  Slice narrow_gradient(std::string_view name);
  std::int64_t weights_in(std::string_view name) const {
    return model_.layout.run(parameters_layer(), name).size;
  }
  std::uint32_t parameters_layer() const { return parameters_of_.value_or(layer_); }
  Slice gradient_slice(std::string_view name);

  BindingModel& model_;
  Rank rank_;
  std::size_t place_;
  std::uint32_t layer_, microbatch_;
  bool again_, backward_;
  std::int64_t first_sample_;
  std::optional<std::uint32_t> parameters_of_;  // another layer than this
};

/// Binds the kernels of an op of a layer by its name: fused ones, joined by '+', run one after the
/// other.
void bind_pieces(PieceSite& site, std::string_view name);

/// Binds a kernel of a layer; the data of an exchange of one. `piece` is its
/// name.
void bind_dense(PieceSite& site, std::string_view piece);
Slice dense_exchange(PieceSite& site, std::string_view piece);
void bind_block(PieceSite& site, std::string_view piece);
Slice block_exchange(PieceSite& site, std::string_view piece);
void bind_end(PieceSite& site,
              std::string_view piece);  // embedding, last norm, head
Slice end_exchange(PieceSite& site, std::string_view piece);

/// Norm kernels, which blocks and the end share: forward, gradient of the
/// input, of the weights.
struct NormSlices {
  std::string_view name;  // of its weights
  Slice x, y, x_gradient, y_gradient;
};
/// `rest` is what follows the norm in the piece's name: nothing, .grad, .wgrad, or their casts.
void bind_norm(PieceSite& site, const NormSlices& norm, std::string_view rest);

}  // namespace rehearse
