// What is trained: the layers of a model in forward order, each with its shape and parameters. How
// they are cut over ranks is not known here (strategies/layers/tensor_parallel.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/workload/cnn.hpp"
#include "sim/workload/model_choice.hpp"
#include "sim/workload/transformer.hpp"
#include "topology/files/document.hpp"

namespace rehearse {

enum class LayerKind : std::uint8_t { embedding, block, final_norm, head, dense, images };

/// One fully connected layer of an MLP, with its activation; the last one carries the loss.
struct Dense {
  std::int64_t inputs = 0, outputs = 0;
  bool bias = true, last = false;
  bool first = false;  // nobody needs the gradient of its input
  bool row = false;    // of two layers split over ranks the first is by columns, the second by rows
  friend bool operator==(const Dense&, const Dense&) = default;
};

struct Layer {
  std::string name;  // "block 17"
  LayerKind kind{};
  std::uint32_t like = 0;  // the first layer that is the same work
  std::int64_t parameters = 0;
  std::variant<std::monostate, Dense, ImageModule> shape;  // a transformer's is the workload's
  friend bool operator==(const Layer&, const Layer&) = default;
};

enum class SampleKind : std::uint8_t { sequence, image, vector };

/// A value: printable, comparable.
struct Workload {
  std::string name;    // "llama-3-8b"
  std::string family;  // "llama", "cnn", "mlp"
  SampleKind sample{};
  std::int64_t seq_length = 1;  // tokens of a sample, when the scenario does not say
  Transformer transformer;      // of sequences
  std::vector<Layer> layers;
  friend bool operator==(const Workload&, const Workload&) = default;

  std::int64_t parameters() const;
};

/// Of how many tensors its parameters are: optimizers that take them one by one launch as often.
std::int64_t tensors_of(const Workload& workload, const Layer& layer);

/// The model a scenario chooses. A config file is looked for beside `mentioned_in`, the scenario's
/// own file. Throws InputError: an unknown preset, or all mistakes of a config.
Workload build_workload(const ModelChoice& choice, const std::string& mentioned_in = "");

/// "llama-3-8b: 32 blocks, 8,030,261,248 parameters".
std::string describe(const Workload&);

// How the makers of families (transformer, cnn, mlp) become workloads; `like` is filled in.
Workload transformer_workload(std::string name, std::string family, const Transformer&);
Workload image_workload(std::string name, std::vector<Layer> layers);
Workload mlp_workload(std::string name, std::span<const std::int64_t> sizes, bool bias);

}  // namespace rehearse
