// One reader per family of models; all give the same Transformer.
#include "sim/workload/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "topology/files/fields.hpp"

namespace rehearse {

namespace {

// Beyond these nothing was ever built, and no product of them overflows 64 bits.
constexpr std::size_t most_layers = 100'000, most_mlp_layers = 4096, widest = 1 << 20,
                      most_words = 1 << 28;
constexpr double most_parameters = 1e17;

std::int64_t count(Fields& fields, std::string_view key, std::size_t most) {
  fields.require(key);
  return static_cast<std::int64_t>(fields.count(key, 1, most).value_or(0));
}

std::int64_t count_or(Fields& fields, std::string_view key, std::size_t most,
                      std::int64_t otherwise) {
  if (!fields.any(key)) return otherwise;
  return static_cast<std::int64_t>(fields.count(key, 1, most).value_or(0));
}

// GPT-2 has names of its own and takes everybody's, as its class in Hugging Face does.
std::int64_t either(Fields& fields, std::string_view own, std::string_view common,
                    std::size_t most) {
  return fields.any(common) ? count(fields, common, most) : count(fields, own, most);
}

void read_sizes(Fields& fields, Transformer& m) {
  m.hidden = count(fields, "hidden_size", widest);
  m.layers = count(fields, "num_hidden_layers", most_layers);
  m.heads = count(fields, "num_attention_heads", widest);
  m.vocabulary = count(fields, "vocab_size", most_words);
}

void read_gpt2(Fields& fields, Transformer& m) {
  m.hidden = either(fields, "n_embd", "hidden_size", widest);
  m.layers = either(fields, "n_layer", "num_hidden_layers", most_layers);
  m.heads = either(fields, "n_head", "num_attention_heads", widest);
  m.positions = either(fields, "n_positions", "max_position_embeddings", most_words);
  m.vocabulary = count(fields, "vocab_size", most_words);
  m.ffn = count_or(fields, "n_inner", widest * 16, 4 * m.hidden);
  m.tied = fields.flag("tie_word_embeddings").value_or(true);
}

void read_llama(Fields& fields, Transformer& m) {
  read_sizes(fields, m);
  m.ffn = count(fields, "intermediate_size", widest * 16);
  m.positions = count(fields, "max_position_embeddings", most_words);
  m.kv_heads = count_or(fields, "num_key_value_heads", widest, m.heads);
  m.head_size = count_or(fields, "head_dim", widest, 0);
  m.norm = Norm::rms;
  m.learned_positions = false;
  m.gated = true;
  m.tied = fields.flag("tie_word_embeddings").value_or(false);
  m.qkv_bias = m.out_bias = fields.flag("attention_bias").value_or(false);
  m.mlp_bias = fields.flag("mlp_bias").value_or(false);
}

void read_mistral(Fields& fields, Transformer& m) {
  read_llama(fields, m);
  m.window = count_or(fields, "sliding_window", most_words, 0);
}

void read_qwen2(Fields& fields, Transformer& m) {
  read_llama(fields, m);
  m.qkv_bias = true;
  const std::int64_t window = count_or(fields, "sliding_window", most_words, 0);
  if (fields.flag("use_sliding_window").value_or(false)) m.window = window;
}

// The first Qwen counts the gate's and the up matrix's width together (modeling_qwen.py: w1 and w2
// have intermediate_size // 2 rows each).
void read_qwen(Fields& fields, Transformer& m) {
  read_sizes(fields, m);
  m.ffn =
      static_cast<std::int64_t>(fields.count("intermediate_size", 2, widest * 16).value_or(0) / 2);
  fields.require("intermediate_size");
  m.positions = either(fields, "seq_length", "max_position_embeddings", most_words);
  m.head_size = count_or(fields, "kv_channels", widest, 0);
  m.norm = Norm::rms;
  m.learned_positions = false;
  m.gated = true;
  m.tied = fields.flag("tie_word_embeddings").value_or(false);
  m.out_bias = m.mlp_bias = !fields.flag("no_bias").value_or(true);
}

void read_mixtral(Fields& fields, Transformer& m) {
  read_mistral(fields, m);
  m.experts = count(fields, "num_local_experts", 4096);
  m.experts_per_token = count(fields, "num_experts_per_tok", 4096);
  if (m.experts > 0 && m.experts_per_token > m.experts)
    fields.complain("num_experts_per_tok",
                    fmt::format("num_experts_per_tok {} is more than num_local_experts {}",
                                m.experts_per_token, m.experts));
}

void read_bert(Fields& fields, Transformer& m) {
  read_sizes(fields, m);
  m.ffn = count(fields, "intermediate_size", widest * 16);
  m.positions = count(fields, "max_position_embeddings", most_words);
  m.token_types = count_or(fields, "type_vocab_size", most_words, 2);
  m.norm_after = m.pretraining_heads = true;
  m.causal = false;
}

struct Family {
  std::string_view model_type;
  void (*read)(Fields&, Transformer&);
};
constexpr Family families[] = {{"gpt2", read_gpt2},       {"llama", read_llama},
                               {"mistral", read_mistral}, {"qwen2", read_qwen2},
                               {"qwen", read_qwen},       {"mixtral", read_mixtral},
                               {"bert", read_bert}};
constexpr std::array<std::string_view, 8> model_types{"gpt2", "llama",   "mistral", "qwen2",
                                                      "qwen", "mixtral", "bert",    "mlp"};

// What the sizes must be to each other; a size of zero was complained about already.
void check(Fields& fields, std::string_view heads_key, Transformer& m) {
  if (m.kv_heads == 0) m.kv_heads = m.heads;
  if (m.hidden == 0 || m.heads == 0 || m.kv_heads == 0) return;
  if (m.head_size == 0 && m.hidden % m.heads != 0)
    fields.complain(heads_key, fmt::format("hidden size {} is not a multiple of {} attention heads",
                                           m.hidden, m.heads));
  if (m.head_size == 0) m.head_size = m.hidden / m.heads;
  if (m.heads % m.kv_heads != 0)
    fields.complain("num_key_value_heads",
                    fmt::format("{} attention heads are not a multiple of {} key-value heads",
                                m.heads, m.kv_heads));
}

double estimated_parameters(const Transformer& m) {
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  const double mlps = std::max(1.0, real(m.experts)) * 3 * real(m.hidden) * real(m.ffn);
  const double attention = 4 * real(m.hidden) * real(m.heads) * real(m.head_size);
  return real(m.layers) * (mlps + attention) + 2 * real(m.vocabulary) * real(m.hidden);
}

// Beyond this no sum is sure to fit 64 bits.
void check_parameters(Fields& fields, double parameters) {
  if (parameters > most_parameters)
    fields.complain("", fmt::format("{:.2g} parameters are more than {:.0e}, the most that is "
                                    "counted here",
                                    parameters, most_parameters));
}

Workload read_mlp(Fields& fields, std::string name, Problems& problems, UnknownKeys unknown) {
  fields.require("layer_sizes");
  const Value* list = fields.any("layer_sizes");
  const bool bias = fields.flag("bias").value_or(true);
  if (unknown == UnknownKeys::refused)
    fields.finish();
  else
    fields.finish_without_kind();
  std::vector<std::int64_t> sizes;
  if (list && list->array())
    for (const Value& item : *list->array()) {
      const auto* size = std::get_if<std::int64_t>(&item.data);
      if (size && *size >= 1 && *size <= static_cast<std::int64_t>(most_words))
        sizes.push_back(*size);
      else
        problems.push_back(
            {item.place,
             fmt::format("a layer size must be a whole number from 1 to {}", most_words)});
    }
  if (list &&
      (!list->array() || list->array()->size() < 2 || list->array()->size() > most_mlp_layers + 1))
    fields.complain("layer_sizes", "'layer_sizes' must be a list of 2 to 4097 sizes");
  double parameters = 0;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    parameters += static_cast<double>(sizes[i] + 1) * static_cast<double>(sizes[i + 1]);
  if (problems.empty()) check_parameters(fields, parameters);
  throw_if_any(problems);
  return mlp_workload(std::move(name), sizes, bias);
}

}  // namespace

Workload read_model(const Value& table, std::string name, UnknownKeys unknown) {
  Problems problems;
  Fields fields{table, unknown == UnknownKeys::refused ? "[model]" : "the config", problems};
  fields.require("model_type");
  const auto type = fields.choice("model_type", model_types);
  if (!type) {
    fields.finish_without_kind();
    throw_if_any(problems);
  }
  const std::string_view family = model_types[*type];
  if (name.empty()) name = family;
  if (family == "mlp") return read_mlp(fields, std::move(name), problems, unknown);
  Transformer model;
  families[*type].read(fields, model);
  // Known, and without effect: one activation costs what another does.
  for (const char* key : {"hidden_act", "activation_function"}) fields.text(key);
  check(fields, fields.any("n_head") ? "n_head" : "num_attention_heads", model);
  if (unknown == UnknownKeys::refused)
    fields.finish();
  else
    fields.finish_without_kind();
  if (problems.empty()) check_parameters(fields, estimated_parameters(model));
  throw_if_any(std::move(problems));
  return transformer_workload(std::move(name), std::string{family}, model);
}

Workload parse_hf_config(std::string_view text, const std::string& file, UnknownKeys unknown) {
  return read_model(parse_json_document(text, file, Nulls::left_out), "", unknown);
}

}  // namespace rehearse
