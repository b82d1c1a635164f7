// What embeddings look up and losses aim at: a number of the vocabulary.
#pragma once

#include <cstdint>

namespace rehearse {

enum class Token : std::int32_t {};

/// As a target: this position has no loss and no gradient (padding, a prompt).
inline constexpr Token ignored_token{-100};  // PyTorch's ignore_index

}  // namespace rehearse
