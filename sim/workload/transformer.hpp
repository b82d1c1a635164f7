// The shape of a transformer, in one struct for every family: GPT, LLaMA, Mixtral, BERT.
#pragma once

#include <cstdint>

namespace rehearse {

enum class Norm : std::uint8_t { layer, rms };

/// Numbers as in a Hugging Face config. Widths that models leave out are filled in by the reader.
struct Transformer {
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_size = 0;
  std::int64_t ffn = 0;  // of one gate, up or down matrix
  std::int64_t vocabulary = 0, positions = 0;
  std::int64_t token_types = 0;                     // BERT's segments
  std::int64_t experts = 0, experts_per_token = 0;  // 0: one MLP, no router
  std::int64_t window = 0;                          // keys a query sees; 0: all
  Norm norm = Norm::layer;
  bool learned_positions = true;  // else rotary
  bool gated = false;             // SwiGLU: a gate and an up matrix
  bool norm_after = false;        // BERT: x = norm(x + f(x)), and no norm at the end
  bool causal = true;
  bool qkv_bias = true, out_bias = true, mlp_bias = true;
  bool tied = true;                // the LM head is the embedding, transposed
  std::int64_t classes = 0;        // that the head tells for each token; 0: words
  double scored = 1;               // share of the tokens that the head is for: BERT's masked ones
  bool pretraining_heads = false;  // BERT's pooler, next-sentence head and masked-LM transform
  friend bool operator==(const Transformer&, const Transformer&) = default;

  std::int64_t query_width() const { return heads * head_size; }
  std::int64_t kv_width() const { return kv_heads * head_size; }
  std::int64_t norm_parameters() const { return norm == Norm::layer ? 2 * hidden : hidden; }
  std::int64_t norm_tensors() const { return norm == Norm::layer ? 2 : 1; }
};

// Parameters of the layers, each counted where it stands; the tied head has none of its own.
std::int64_t embedding_parameters(const Transformer&);
std::int64_t block_parameters(const Transformer&);
std::int64_t head_parameters(const Transformer&);
// And of how many tensors they are.
std::int64_t embedding_tensors(const Transformer&);
std::int64_t block_tensors(const Transformer&);
std::int64_t head_tensors(const Transformer&);

}  // namespace rehearse
