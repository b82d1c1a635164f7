// Messages of our error types, and the spelling help they give.
#include "sim/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/assert.hpp"

namespace rehearse {

void assertion_failed(const char* condition, const char* file, int line) {
  throw std::logic_error(fmt::format("{}:{}: assertion failed: {}", file, line, condition));
}

std::string to_string(const Problem& problem) {
  const Place& at = problem.place;
  if (at.file.empty()) return "error: " + problem.message;
  if (at.line == 0) return fmt::format("{}: error: {}", at.file, problem.message);
  return fmt::format("{}:{}:{}: error: {}", at.file, at.line, at.column, problem.message);
}

namespace {

std::string joined(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += to_string(problem);
  }
  return text;
}

// Levenshtein distance with a swap of neighbours counted once: the commonest slip of the fingers.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

// A part left off: 'micro_batch' for 'micro_batch_size', but not 'normal' for 'lognormal'. The
// shortest such, or nullptr.
const std::string* completed(std::string_view word, std::span<const std::string> candidates) {
  const auto is_joint = [](char c) { return c == '_' || c == '-'; };
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    if (word.empty() || candidate.size() <= word.size()) continue;
    const bool fits =
        (candidate.starts_with(word) && is_joint(candidate[word.size()])) ||
        (candidate.ends_with(word) && is_joint(candidate[candidate.size() - word.size() - 1]));
    if (fits && (best == nullptr || candidate.size() < best->size())) best = &candidate;
  }
  return best;
}

}  // namespace

InputError::InputError(std::vector<Problem> problems)
    : std::runtime_error(joined(problems)), problems_{std::move(problems)} {
  ASSERT(!problems_.empty());
}

InputError::InputError(Place place, std::string message)
    : InputError(std::vector<Problem>{{std::move(place), std::move(message)}}) {}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t longest = 64;  // beyond it nobody mistyped a key of ours
  if (word.size() > longest) return "";
  const std::string* best = nullptr;
  std::size_t nearest = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < nearest) nearest = distance, best = &candidate;
  }
  if (best == nullptr) best = completed(word, candidates);
  return best ? fmt::format("; did you mean '{}'?", *best) : "";
}

}  // namespace rehearse
