// Hugging Face's config.json, or the same keys in a scenario, to a workload. The family is told by
// `model_type` alone: the same key means other things in other families.
#pragma once

#include <string>
#include <string_view>

#include "sim/workload/workload.hpp"
#include "topology/files/document.hpp"

namespace rehearse {

/// A file of Hugging Face's has dozens of keys that say nothing about shapes; in a scenario each
/// key was written to be heard.
enum class UnknownKeys : std::uint8_t { ignored, refused };

/// Throws InputError with all mistakes, each at its place.
Workload read_model(const Value& table, std::string name, UnknownKeys unknown);

/// The text of a config.json; `file` is what to call it.
Workload parse_hf_config(std::string_view text, const std::string& file, UnknownKeys unknown);

}  // namespace rehearse
