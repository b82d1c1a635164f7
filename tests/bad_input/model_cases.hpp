// Broken configs of models, each with the exact text its user gets.
#pragma once

#include "tests/bad_input/case.hpp"

namespace rehearse::bad_input {

/// A config of Llama's, one key to a line, with one key replaced by other text ("" leaves it out).
inline std::string llama_with(const std::string& key, const std::string& line) {
  const std::pair<const char*, const char*> lines[] = {
      {"model_type", R"("model_type": "llama")"},
      {"hidden_size", R"("hidden_size": 4096)"},
      {"intermediate_size", R"("intermediate_size": 14336)"},
      {"num_hidden_layers", R"("num_hidden_layers": 32)"},
      {"num_attention_heads", R"("num_attention_heads": 32)"},
      {"num_key_value_heads", R"("num_key_value_heads": 8)"},
      {"max_position_embeddings", R"("max_position_embeddings": 8192)"},
      {"vocab_size", R"("vocab_size": 128256)"}};
  std::string text = "{\n\"architectures\": [\"LlamaForCausalLM\"]";
  for (const auto& [name, original] : lines)
    if (name != key)
      text += std::string{",\n"} + original;
    else if (!line.empty())
      text += ",\n" + line;
  return text + "\n}\n";
}

inline Case llama_case(std::string name, const std::string& key, const std::string& line,
                       std::string message) {
  return {std::move(name), "m.json", {{"m.json", llama_with(key, line)}}, std::move(message)};
}

inline const std::vector<Case> model_cases = {
    llama_case("missing_hidden_size", "hidden_size", "",
               "m.json:1:1: error: the config needs the key 'hidden_size'"),
    llama_case("missing_model_type", "model_type", "",
               "m.json:1:1: error: the config needs the key 'model_type'"),
    llama_case("unknown_model_type", "model_type", R"("model_type": "lama")",
               "m.json:3:15: error: unknown model_type 'lama'; did you mean 'llama'?"),
    llama_case("foreign_model_type", "model_type", R"("model_type": "stable_diffusion")",
               "m.json:3:15: error: unknown model_type 'stable_diffusion'; one of gpt2, llama, "
               "mistral, qwen2, qwen, mixtral, bert, mlp"),
    llama_case("model_type_is_a_number", "model_type", R"("model_type": 7)",
               "m.json:3:15: error: 'model_type' must be a string, not a number"),
    llama_case("negative_layers", "num_hidden_layers", R"("num_hidden_layers": -1)",
               "m.json:6:22: error: 'num_hidden_layers' must be at least 1, not -1"),
    llama_case("no_layers", "num_hidden_layers", R"("num_hidden_layers": 0)",
               "m.json:6:22: error: 'num_hidden_layers' must be at least 1, not 0"),
    llama_case("a_million_million_layers", "num_hidden_layers",
               R"("num_hidden_layers": 1000000000000)",
               "m.json:6:22: error: 'num_hidden_layers' must be at most 100000, not "
               "1000000000000"),
    llama_case("layers_beyond_64_bits", "num_hidden_layers",
               R"("num_hidden_layers": 99999999999999999999)",
               "m.json:6:22: error: 'num_hidden_layers' must be a whole number, not a number"),
    llama_case("hidden_size_is_text", "hidden_size", R"("hidden_size": "4096")",
               "m.json:4:16: error: 'hidden_size' must be a whole number, not a string"),
    llama_case("hidden_size_is_fractional", "hidden_size", R"("hidden_size": 4096.5)",
               "m.json:4:16: error: 'hidden_size' must be a whole number, not a number"),
    llama_case("hidden_size_is_null", "hidden_size", R"("hidden_size": null)",
               "m.json:1:1: error: the config needs the key 'hidden_size'"),
    llama_case("heads_do_not_divide_hidden", "num_attention_heads", R"("num_attention_heads": 24)",
               "m.json:7:24: error: hidden size 4096 is not a multiple of 24 attention heads"),
    llama_case("key_value_heads_do_not_divide", "num_key_value_heads",
               R"("num_key_value_heads": 5)",
               "m.json:8:24: error: 32 attention heads are not a multiple of 5 key-value heads"),
    llama_case("no_key_value_heads", "num_key_value_heads", R"("num_key_value_heads": 0)",
               "m.json:8:24: error: 'num_key_value_heads' must be at least 1, not 0"),
    llama_case("key_given_twice", "vocab_size", "\"vocab_size\": 1,\n\"vocab_size\": 2",
               "m.json:11:1: error: key 'vocab_size' is given twice"),
    llama_case("two_mistakes", "hidden_size", "\"hidden_size\": -1,\n\"tie_word_embeddings\": 1",
               "m.json:4:16: error: 'hidden_size' must be at least 1, not -1\n"
               "m.json:5:24: error: 'tie_word_embeddings' must be true or false, not a number"),
    {"widest_of_everything",
     "m.json",
     {{"m.json",
       "{\"model_type\": \"gpt2\", \"n_embd\": 1048576, \"n_layer\": 100000, \"n_head\": 1,\n"
       "\"n_positions\": 1, \"vocab_size\": 1}\n"}},
     "m.json:1:1: error: 1.8e+18 parameters are more than 1e+17, the most that is counted here"},
    {"gpt2_without_sizes",
     "m.json",
     {{"m.json", "{\"model_type\": \"gpt2\"}\n"}},
     "m.json:1:1: error: the config needs the key 'n_embd'\n"
     "m.json:1:1: error: the config needs the key 'n_layer'\n"
     "m.json:1:1: error: the config needs the key 'n_head'\n"
     "m.json:1:1: error: the config needs the key 'n_positions'\n"
     "m.json:1:1: error: the config needs the key 'vocab_size'"},
    {"more_experts_per_token_than_experts",
     "m.json",
     {{"m.json",
       "{\"model_type\": \"mixtral\", \"hidden_size\": 64, \"intermediate_size\": 64,\n"
       "\"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"vocab_size\": 64,\n"
       "\"max_position_embeddings\": 64, \"num_local_experts\": 2, \"num_experts_per_tok\": 3}\n"}},
     "m.json:3:79: error: num_experts_per_tok 3 is more than num_local_experts 2"},
    {"mlp_of_one_size",
     "m.json",
     {{"m.json", "{\"model_type\": \"mlp\", \"layer_sizes\": [8]}\n"}},
     "m.json:1:38: error: 'layer_sizes' must be a list of 2 to 4097 sizes"},
    {"mlp_too_wide",
     "m.json",
     {{"m.json",
       "{\"model_type\": \"mlp\", \"layer_sizes\": [268435456, 268435456, 268435456]}\n"}},
     "m.json:1:1: error: 1.4e+17 parameters are more than 1e+17, the most that is counted here"},
    {"qwen_with_half_a_column",
     "m.json",
     {{"m.json",
       "{\"model_type\": \"qwen\", \"hidden_size\": 64, \"intermediate_size\": 1,\n"
       "\"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"vocab_size\": 64,\n"
       "\"seq_length\": 64}\n"}},
     "m.json:1:64: error: 'intermediate_size' must be at least 2, not 1"},
    {"mlp_of_words",
     "m.json",
     {{"m.json", "{\"model_type\": \"mlp\", \"layer_sizes\": [8, \"x\", 0]}\n"}},
     "m.json:1:42: error: a layer size must be a whole number from 1 to 268435456\n"
     "m.json:1:47: error: a layer size must be a whole number from 1 to 268435456"},
    {"mlp_without_sizes",
     "m.json",
     {{"m.json", "{\"model_type\": \"mlp\"}\n"}},
     "m.json:1:1: error: the config needs the key 'layer_sizes'"},
    {"a_list", "m.json", {{"m.json", "[]\n"}}, "m.json:1:1: error: the file must hold one object"},
    {"null", "m.json", {{"m.json", "null\n"}}, "m.json:1:1: error: null means nothing here"},
    {"a_directory", "m.json", {{"m.json/", ""}}, "m.json: error: is a directory, not a file"},
    {"no_such_file", "m.json", {}, "m.json: error: cannot read: No such file or directory"},
    {"no_such_file_but_one_like_it",
     "model.json",
     {{"mdoel.json", "{}"}, {"model.toml", ""}, {"thesis.json", ""}},
     "model.json: error: cannot read: No such file or directory; did you mean 'mdoel'?"},
    {"not_utf8",
     "m.json",
     {{"m.json", "{\"model_type\": \"\xff\"}\n"}},
     "m.json:1:17: error: byte 0xff is not UTF-8 text"},
    {"empty_file",
     "m.json",
     {{"m.json", ""}},
     "m.json:1:1: error: syntax error while parsing value - unexpected end of input; expected '[', "
     "'{', or a literal"},
    {"truncated",
     "m.json",
     {{"m.json", "{\n\"model_type\": \"llama\",\n\"hidden_size\": 40"}},
     "m.json:3:18: error: syntax error while parsing object - unexpected end of input; expected "
     "'}'"},
};

}  // namespace rehearse::bad_input
