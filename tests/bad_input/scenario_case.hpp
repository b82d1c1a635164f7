// What broken scenarios begin with before they go wrong, so that a case shows its mistake only.
#pragma once

#include <utility>

#include "tests/bad_input/case.hpp"

namespace rehearse::bad_input {

using Files = std::vector<std::pair<std::string, std::string>>;

inline Case scenario_case(std::string name, std::string text, std::string message, Files more) {
  Files files{{"s.toml", std::move(text)}};
  files.insert(files.end(), more.begin(), more.end());
  return {std::move(name), "s.toml", std::move(files), std::move(message)};
}

/// Four good lines (12 layers and 12 heads on 8 GPUs), then `text` from line 5 on.
inline Case on_ring(std::string name, const std::string& text, std::string message,
                    Files more = {}) {
  return scenario_case(std::move(name),
                       "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"ring-8\"\n" + text,
                       std::move(message), std::move(more));
}

/// Five good lines (the same model on 24 GPUs), then `text` from line 6 on.
inline Case on_dgx(std::string name, const std::string& text, std::string message) {
  return scenario_case(
      std::move(name),
      "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"dgx-h100\"\nnodes = 3\n" + text,
      std::move(message), {});
}

/// Three good lines (8 GPUs) that end in [model], then `text` from line 4 on.
inline Case without_model(std::string name, const std::string& text, std::string message,
                          Files more = {}) {
  return scenario_case(std::move(name), "[cluster]\nname = \"ring-8\"\n[model]\n" + text,
                       std::move(message), std::move(more));
}

}  // namespace rehearse::bad_input
