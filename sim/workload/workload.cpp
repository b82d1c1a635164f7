// Layers in forward order for each family, and the choice between presets, files and inline keys.
#include "sim/workload/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "sim/workload/hf_config.hpp"
#include "sim/workload/model_presets.hpp"
#include "topology/files/fields.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

// Long contexts come after pre-training, in a short last phase: 8192 is what Llama 3 trains with.
constexpr std::int64_t longest_default = 8192;

// Each layer points at the first one with the same work: tables of costs have one row for them.
void find_alike(Workload& workload) {
  std::vector<Layer>& layers = workload.layers;
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    layers[i].like = i;
    for (std::uint32_t j = 0; j < i; ++j) {
      if (layers[j].like != j) continue;  // a copy itself
      if (layers[j].kind != layers[i].kind || layers[j].shape != layers[i].shape) continue;
      layers[i].like = j;
      break;
    }
  }
}

std::string digits_in_groups(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

// "models/llama-3-8b.json" is called llama-3-8b; a bare config.json after its folder.
std::string name_of_file(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  const std::string folder = file.parent_path().filename().string();
  return stem == "config" && !folder.empty() ? folder : stem;
}

}  // namespace

std::int64_t Workload::parameters() const {
  std::int64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.parameters;
  return sum;
}

std::int64_t tensors_of(const Workload& workload, const Layer& layer) {
  const Transformer& model = workload.transformer;
  switch (layer.kind) {
    case LayerKind::embedding:
      return embedding_tensors(model);
    case LayerKind::block:
      return block_tensors(model);
    case LayerKind::final_norm:
      return model.norm_tensors();
    case LayerKind::head:
      return head_tensors(model);
    case LayerKind::dense:
      return std::get<Dense>(layer.shape).bias ? 2 : 1;
    case LayerKind::images:
      return tensors_of(std::get<ImageModule>(layer.shape));
  }
  ASSERT(false);
  return 0;
}

std::string describe(const Workload& workload) {
  const auto blocks =
      std::count_if(workload.layers.begin(), workload.layers.end(), [&](const Layer& layer) {
        return workload.sample != SampleKind::sequence || layer.kind == LayerKind::block;
      });
  const std::string_view word = workload.sample == SampleKind::sequence ? "blocks" : "layers";
  return fmt::format("{}: {} {}, {} parameters", workload.name, blocks, word,
                     digits_in_groups(workload.parameters()));
}

Workload transformer_workload(std::string name, std::string family, const Transformer& model) {
  ASSERT(model.layers > 0 && model.hidden > 0 && model.positions > 0);
  Workload workload{.name = std::move(name),
                    .family = std::move(family),
                    .sample = SampleKind::sequence,
                    .seq_length = std::min(model.positions, longest_default),
                    .transformer = model};
  const auto add = [&](std::string layer, LayerKind kind, std::int64_t parameters) {
    workload.layers.push_back({std::move(layer), kind, 0, parameters, {}});
  };
  workload.layers.reserve(static_cast<std::size_t>(model.layers) + 3);
  add("embedding", LayerKind::embedding, embedding_parameters(model));
  for (std::int64_t i = 0; i < model.layers; ++i)
    add(fmt::format("block {}", i), LayerKind::block, block_parameters(model));
  if (!model.norm_after) add("final norm", LayerKind::final_norm, model.norm_parameters());
  add("head", LayerKind::head, head_parameters(model));
  find_alike(workload);
  return workload;
}

Workload image_workload(std::string name, std::vector<Layer> layers) {
  Workload workload{.name = std::move(name), .family = "cnn", .sample = SampleKind::image};
  workload.layers = std::move(layers);
  find_alike(workload);
  return workload;
}

Workload mlp_workload(std::string name, std::span<const std::int64_t> sizes, bool bias) {
  ASSERT(sizes.size() >= 2);
  Workload workload{.name = std::move(name), .family = "mlp", .sample = SampleKind::vector};
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const Dense dense{.inputs = sizes[i],
                      .outputs = sizes[i + 1],
                      .bias = bias,
                      .last = i + 2 == sizes.size(),
                      .first = i == 0,
                      .row = i % 2 == 1};
    workload.layers.push_back({fmt::format("layer {}", i), LayerKind::dense, 0,
                               (dense.inputs + (bias ? 1 : 0)) * dense.outputs, dense});
  }
  find_alike(workload);
  return workload;
}

Workload build_workload(const ModelChoice& choice, const std::string& mentioned_in) {
  const int given =
      !choice.preset.empty() + !choice.hf_config.empty() + !choice.inline_json.empty();
  if (given != 1)
    throw InputError(fmt::format(
        "[model] must have one of preset, hf_config, or a model's own keys, not {}", given));
  if (!choice.preset.empty()) return preset(choice.preset);
  if (!choice.inline_json.empty())
    return parse_hf_config(choice.inline_json, "", UnknownKeys::refused);  // places mean nothing
  const std::filesystem::path beside =
      std::filesystem::path{mentioned_in}.parent_path() / std::filesystem::path{choice.hf_config};
  Workload workload =
      parse_hf_config(read_text_file(beside.string()), beside.string(), UnknownKeys::ignored);
  workload.name = name_of_file(beside);
  return workload;
}

}  // namespace rehearse
