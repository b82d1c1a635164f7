// The table of names. GPT-3 and Megatron's family have no config of Hugging Face's: their rows are
// here; what has one is a file under scenarios/models/.
#include "sim/workload/model_presets.hpp"

#include <fmt/format.h>

#include <array>

#include "sim/base/error.hpp"
#include "sim/workload/hf_config.hpp"

namespace rehearse {

namespace {

struct GptRow {
  std::string_view name;
  std::int64_t hidden, layers, heads, vocabulary;
};

// GPT-3: Brown et al. 2020, table 2.1, with GPT-2's vocabulary. The others: Narayanan et al.,
// SC'21, table 1, whose vocabulary is padded to 51,200. All with 2,048 positions and tied
// embeddings.
constexpr GptRow gpt_rows[] = {
    {"gpt3-175b", 12288, 96, 96, 50257},      {"megatron-1.7b", 2304, 24, 24, 51200},
    {"megatron-3.6b", 3072, 30, 32, 51200},   {"megatron-7.5b", 4096, 36, 32, 51200},
    {"megatron-18b", 6144, 40, 48, 51200},    {"megatron-39b", 8192, 48, 64, 51200},
    {"megatron-76b", 10240, 60, 80, 51200},   {"megatron-145b", 12288, 80, 96, 51200},
    {"megatron-310b", 16384, 96, 128, 51200}, {"megatron-530b", 20480, 105, 128, 51200},
    {"megatron-1t", 25600, 128, 160, 51200},
};

Workload gpt(const GptRow& row) {
  return transformer_workload(std::string{row.name}, "gpt",
                              {.hidden = row.hidden,
                               .layers = row.layers,
                               .heads = row.heads,
                               .kv_heads = row.heads,
                               .head_size = row.hidden / row.heads,
                               .ffn = 4 * row.hidden,
                               .vocabulary = row.vocabulary,
                               .positions = 2048});
}

// Wide enough to be split over 8 ranks, deep enough for 4 stages.
Workload some_mlp() {
  constexpr std::array<std::int64_t, 5> sizes{1024, 4096, 4096, 4096, 1000};
  return mlp_workload("mlp", sizes, true);
}

struct Made {
  std::string_view name;
  Workload (*make)();
};
constexpr Made made[] = {{"alexnet", alexnet},
                         {"vgg-16", vgg16},
                         {"resnet-50", resnet50},
                         {"inception-v3", inception_v3},
                         {"mlp", some_mlp}};

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const GptRow& row : gpt_rows) names.emplace_back(row.name);
  for (const ModelFile& file : model_files()) names.emplace_back(file.name);
  for (const Made& model : made) names.emplace_back(model.name);
  return names;
}

Workload preset(std::string_view name) {
  for (const GptRow& row : gpt_rows)
    if (row.name == name) return gpt(row);
  for (const ModelFile& file : model_files())
    if (file.name == name) {
      Workload workload =
          parse_hf_config(file.json, fmt::format("models/{}.json", name), UnknownKeys::ignored);
      workload.name = name;
      return workload;
    }
  for (const Made& model : made)
    if (model.name == name) return model.make();
  const std::vector<std::string> names = preset_names();
  const std::string hint = did_you_mean(name, names);
  throw InputError(
      fmt::format("unknown model '{}'{}", name,
                  hint.empty() ? fmt::format("; one of {}", fmt::join(names, ", ")) : hint));
}

}  // namespace rehearse
