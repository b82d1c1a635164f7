// Parameters of a transformer's layers, weight by weight.
#include "sim/workload/transformer.hpp"

namespace rehearse {

std::int64_t embedding_parameters(const Transformer& m) {
  std::int64_t rows = m.vocabulary + m.token_types;
  if (m.learned_positions) rows += m.positions;
  return rows * m.hidden + (m.norm_after ? m.norm_parameters() : 0);
}

std::int64_t block_parameters(const Transformer& m) {
  const std::int64_t qkv = m.query_width() + 2 * m.kv_width();
  std::int64_t attention = m.hidden * qkv + m.query_width() * m.hidden;
  if (m.qkv_bias) attention += qkv;
  if (m.out_bias) attention += m.hidden;
  const std::int64_t ups = m.gated ? 2 : 1;
  std::int64_t mlp = (ups + 1) * m.hidden * m.ffn;
  if (m.mlp_bias) mlp += ups * m.ffn + m.hidden;
  if (m.experts > 0) mlp = m.experts * mlp + m.hidden * m.experts;  // and the router
  return attention + mlp + 2 * m.norm_parameters();
}

std::int64_t head_parameters(const Transformer& m) {
  if (m.classes > 0) return (m.hidden + 1) * m.classes;
  std::int64_t count = m.tied ? 0 : m.vocabulary * m.hidden;
  if (!m.pretraining_heads) return count;
  // Google's BertForPreTraining: pooler and masked-LM transform are h×h with bias, the latter
  // with a norm; a bias for every word; two classes for the next sentence.
  count += 2 * (m.hidden * m.hidden + m.hidden) + m.norm_parameters();
  return count + m.vocabulary + 2 * m.hidden + 2;
}

std::int64_t embedding_tensors(const Transformer& m) {
  return 1 + (m.learned_positions ? 1 : 0) + (m.token_types > 0 ? 1 : 0) +
         (m.norm_after ? m.norm_tensors() : 0);
}

std::int64_t block_tensors(const Transformer& m) {
  const std::int64_t attention = 4 + (m.qkv_bias ? 3 : 0) + (m.out_bias ? 1 : 0);
  std::int64_t mlp = (m.gated ? 3 : 2) * (m.mlp_bias ? 2 : 1);
  if (m.experts > 0) mlp = m.experts * mlp + 1;
  return attention + mlp + 2 * m.norm_tensors();
}

std::int64_t head_tensors(const Transformer& m) {
  if (m.classes > 0) return 2;
  const std::int64_t table = m.tied ? 0 : 1;
  // Pooler, transform and next sentence with their biases, a norm, the bias of words.
  return m.pretraining_heads ? table + 3 * 2 + m.norm_tensors() + 1 : table;
}

}  // namespace rehearse
