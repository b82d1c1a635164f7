// Models by name and by config: parameter counts against the published ones, to the last digit.
#include "sim/workload/workload.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/workload/hf_config.hpp"
#include "sim/workload/model_presets.hpp"
#include "tests/support/places.hpp"

namespace rehearse::workload_test {
namespace {

struct Published {
  const char* name;
  std::int64_t parameters;
};

// GPT-2, Llama, Mistral, Mixtral, Qwen2: the tensors of the published checkpoints. BERT: with the
// heads of pre-training. GPT-3: its shape with GPT-2's 50,257 words (the paper says 175B).
constexpr Published published[] = {
    {"gpt2", 124'439'808},
    {"gpt2-medium", 354'823'168},
    {"gpt2-large", 774'030'080},
    {"gpt2-xl", 1'557'611'200},
    {"gpt3-175b", 174'604'259'328},
    {"llama-2-7b", 6'738'415'616},
    {"llama-2-13b", 13'015'864'320},
    {"llama-2-70b", 68'976'648'192},
    {"llama-3-8b", 8'030'261'248},
    {"llama-3-70b", 70'553'706'496},
    {"llama-3-405b", 405'853'388'800},
    {"mistral-7b", 7'241'732'096},
    {"mixtral-8x7b", 46'702'792'704},
    {"mixtral-8x22b", 140'620'634'112},
    {"qwen2-7b", 7'615'616'512},
    {"bert-base", 110'106'428},
    {"bert-large", 336'226'108},
    // torchvision's weights; Inception with its auxiliary classifier.
    {"alexnet", 61'100'840},
    {"vgg-16", 138'357'544},
    {"resnet-50", 25'557'032},
    {"inception-v3", 27'161'264},
};

TEST(Workload, HasThePublishedNumberOfParameters) {
  for (const auto& [name, parameters] : published)
    EXPECT_EQ(preset(name).parameters(), parameters) << name;
}

// len(list(model.parameters())) of torchvision's and Hugging Face's modules.
TEST(Workload, HasAsManyTensorsAsItsModules) {
  for (const auto& [name, tensors] : {Published{"alexnet", 16}, Published{"vgg-16", 32},
                                      Published{"resnet-50", 161}, Published{"inception-v3", 292},
                                      Published{"bert-base", 206}, Published{"llama-3-8b", 291}}) {
    const Workload model = preset(name);
    std::int64_t sum = 0;
    for (const Layer& layer : model.layers) sum += tensors_of(model, layer);
    EXPECT_EQ(sum, tensors) << name;
  }
}

// What BertModel in Hugging Face has: all but masked-LM transform, its norm, words' biases and the
// next-sentence head; the pooler stays.
TEST(Workload, BertWithoutPretrainingHeadsIsAsPublished) {
  for (const auto& [name, parameters] :
       {Published{"bert-base", 109'482'240}, Published{"bert-large", 335'141'888}}) {
    const Workload bert = preset(name);
    const std::int64_t h = bert.transformer.hidden;
    EXPECT_EQ(bert.parameters() - (h * h + h + 2 * h + 30522 + 2 * h + 2), parameters) << name;
  }
}

// Narayanan et al., SC'21: P = 12 l h² (1 + 13/12h + (V + s)/12lh), and in billions in table 1. The
// formula leaves out the last norm.
TEST(Workload, MegatronFamilyFollowsItsFormula) {
  constexpr std::pair<const char*, double> table[] = {
      {"megatron-1.7b", 1.7},   {"megatron-3.6b", 3.6},   {"megatron-7.5b", 7.5},
      {"megatron-18b", 18.4},   {"megatron-39b", 39.1},   {"megatron-76b", 76.1},
      {"megatron-145b", 145.6}, {"megatron-310b", 310.1}, {"megatron-530b", 529.6},
      {"megatron-1t", 1008.0}};
  for (const auto& [name, billions] : table) {
    const Workload model = preset(name);
    const std::int64_t l = model.transformer.layers, h = model.transformer.hidden;
    EXPECT_EQ(model.parameters() - 2 * h, 12 * l * h * h + 13 * l * h + (51200 + 2048) * h) << name;
    EXPECT_NEAR(static_cast<double>(model.parameters()) / 1e9, billions, 0.05) << name;
  }
}

TEST(Workload, InceptionWithoutAuxiliaryClassesIsAsPublished) {
  std::int64_t sum = 0;
  for (const Layer& layer : preset("inception-v3").layers)
    if (layer.name != "auxiliary classes") sum += layer.parameters;
  EXPECT_EQ(sum, 23'834'568);
}

TEST(Workload, ModulesOfImagesFitTogether) {
  for (const char* name : {"alexnet", "vgg-16", "resnet-50", "inception-v3"}) {
    const Workload net = preset(name);
    for (std::size_t i = 0; i + 1 < net.layers.size(); ++i) {
      const auto& from = std::get<ImageModule>(net.layers[i].shape);
      const auto& to = std::get<ImageModule>(net.layers[i + 1].shape);
      EXPECT_EQ(from.tensor(from.output), to.input) << name << " " << net.layers[i].name;
    }
    EXPECT_EQ(std::get<ImageModule>(net.layers.back().shape).ops.back().output.size(), 1000);
  }
  // Alike modules are found: 16 blocks of ResNet-50 are 8 different ones.
  std::size_t different = 0;
  const Workload resnet = preset("resnet-50");
  for (std::size_t i = 0; i < resnet.layers.size(); ++i) different += resnet.layers[i].like == i;
  EXPECT_EQ(different, 10u);
}

TEST(Workload, EveryPresetHasLayersThatAddUp) {
  for (const std::string& name : preset_names()) {
    const Workload model = build_workload({.preset = name});
    EXPECT_EQ(model.name, name);
    ASSERT_FALSE(model.layers.empty()) << name;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const Layer& layer = model.layers[i];
      ASSERT_LE(layer.like, i) << name;
      EXPECT_EQ(layer.parameters, model.layers[layer.like].parameters) << name;
      EXPECT_EQ(model.layers[layer.like].like, layer.like) << name;
    }
  }
}

TEST(Workload, SaysWhatItIs) {
  EXPECT_EQ(describe(preset("llama-3-8b")), "llama-3-8b: 32 blocks, 8,030,261,248 parameters");
  EXPECT_EQ(preset("llama-3-405b").seq_length, 8192);
  EXPECT_EQ(preset("bert-base").seq_length, 512);
}

TEST(Workload, OldQwenCountsGateAndUpTogether) {
  const Workload qwen = parse_hf_config(
      R"({"model_type": "qwen", "hidden_size": 4096, "num_hidden_layers": 32,
          "num_attention_heads": 32, "intermediate_size": 22016, "vocab_size": 151936,
          "kv_channels": 128, "seq_length": 8192, "no_bias": true, "bf16": null})",
      "config.json", UnknownKeys::ignored);
  EXPECT_EQ(qwen.parameters(), 7'721'324'544);
}

TEST(Workload, MlpOfAnyShape) {
  const Workload mlp = build_workload(
      {.inline_json = R"({"model_type": "mlp", "layer_sizes": [784, 512, 512, 512, 10]})"});
  EXPECT_EQ(mlp.parameters(), 785 * 512 + 2 * 513 * 512 + 513 * 10);
  ASSERT_EQ(mlp.layers.size(), 4u);
  EXPECT_EQ(describe(mlp), "mlp: 4 layers, 932,362 parameters");
}

// The same numbers from a published file, a preset and keys in a scenario.
TEST(Workload, ComesFromFilesAndFromKeys) {
  const std::string folder = std::string{REHEARSE_SOURCE_DIR} + "/scenarios/";
  Workload file =
      build_workload({.hf_config = "models/llama-3-8b.json"}, folder + "some-scenario.toml");
  EXPECT_EQ(file, preset("llama-3-8b"));
  Workload keys = build_workload(
      {.inline_json =
           R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
               "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
               "max_position_embeddings": 8192, "vocab_size": 128256})"});
  EXPECT_EQ(keys.name, "llama");
  keys.name = file.name;
  EXPECT_EQ(keys, file);
  // GPT-2 by everybody's names.
  const Workload gpt =
      build_workload({.inline_json =
                          R"({"model_type": "gpt2", "hidden_size": 768, "num_hidden_layers": 12,
               "num_attention_heads": 12, "max_position_embeddings": 1024,
               "vocab_size": 50257})"});
  EXPECT_EQ(gpt.transformer, preset("gpt2").transformer);
}

TEST(Workload, UnknownPresetsHaveANeighbour) {
  try {
    build_workload({.preset = "llama3-8b"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "error: unknown model 'llama3-8b'; did you mean 'llama-3-8b'?");
  }
}

}  // namespace
}  // namespace rehearse::workload_test
