// Cells in and out.
#include "strategies/schedules/csv_action.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/error.hpp"
#include "sim/base/trimmed.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

constexpr std::array<std::string_view, csv_words> spelled{
    "F",      "B",           "I",           "W",       "SEND_F",  "RECV_F",      "SEND_B",
    "RECV_B", "WAIT_SEND_F", "WAIT_SEND_B", "UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD",
};

bool is_digit(char c) { return '0' <= c && c <= '9'; }

std::optional<std::uint32_t> number(std::string_view digits) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  if (error != std::errc{} || end != digits.end() || value >= 1u << 31) return std::nullopt;
  return value;
}

// A mistyped long word has a nearest one; a wrong letter is as near to F as to W.
std::string advice(std::string_view word) {
  std::string capitals;
  for (const char c : word) capitals += 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  if (std::find(spelled.begin(), spelled.end(), capitals) != spelled.end())
    return fmt::format("; did you mean '{}'?", capitals);
  if (word.size() < 3) return "; compute is F, B, I or W";
  return did_you_mean(capitals, std::vector<std::string>(spelled.begin() + 4, spelled.end()));
}

std::string shown(std::string_view text) { return one_line(text.substr(0, 40)); }

std::string parse_one(std::string_view text, std::vector<CsvAction>& actions) {
  const auto digits_end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto word_end = std::find_if(digits_end, text.end(), is_digit);
  const auto stage_size = static_cast<std::size_t>(digits_end - text.begin());
  const auto word_size = static_cast<std::size_t>(word_end - digits_end);
  const std::string_view stage = text.substr(0, stage_size);
  const std::string_view word = text.substr(stage_size, word_size);
  const std::string_view microbatch = text.substr(stage_size + word_size);
  if (stage.empty() || word.empty() || !std::all_of(word_end, text.end(), is_digit))
    return fmt::format("'{}' is no action: write [stage][action][microbatch], e.g. 2F0",
                       shown(text));
  const auto known = std::find(spelled.begin(), spelled.end(), word);
  if (known == spelled.end())
    return fmt::format("unknown action '{}' in '{}'{}", shown(word), shown(text), advice(word));
  const auto meaning = static_cast<CsvWord>(known - spelled.begin());
  if (has_microbatch(meaning) && microbatch.empty())
    return fmt::format("'{}' names no micro-batch: write e.g. {}0", shown(text), shown(text));
  if (!has_microbatch(meaning) && !microbatch.empty())
    return fmt::format("'{}' names a micro-batch: {} concerns the whole stage", shown(text), word);
  const std::optional<std::uint32_t> s = number(stage), i = number(microbatch);
  if (!s || (has_microbatch(meaning) && !i))
    return fmt::format("a number in '{}' is too large", shown(text));
  actions.push_back({*s, meaning, i.value_or(0)});
  return "";
}

}  // namespace

CsvAction csv_action(const Action& action) {
  return {action.stage, static_cast<CsvWord>(action.kind), action.microbatch};
}

std::string to_string(const CsvAction& action) {
  const std::string_view word = spelled[static_cast<std::size_t>(action.word)];
  if (!has_microbatch(action.word)) return fmt::format("{}{}", action.stage, word);
  return fmt::format("{}{}{}", action.stage, word, action.microbatch);
}

CsvCell parse_csv_cell(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = trimmed(text.substr(1, text.size() - 2));
  CsvCell cell;
  if (text.empty()) return cell;
  if (text.front() != '(') {
    cell.mistake = parse_one(text, cell.actions);
    return cell;
  }
  const std::size_t close = text.find(')');
  if (close == text.npos || text.substr(close + 1) != "OVERLAP_F_B") {
    cell.mistake = fmt::format("'{}' is no pair: write e.g. (0F3;3B1)OVERLAP_F_B", shown(text));
    return cell;
  }
  std::string_view parts = text.substr(1, close - 1);
  while (cell.mistake.empty()) {
    const std::size_t end = std::min(parts.find(';'), parts.size());
    cell.mistake = parse_one(trimmed(parts.substr(0, end)), cell.actions);
    if (end == parts.size()) break;
    parts.remove_prefix(end + 1);
  }
  return cell;
}

}  // namespace rehearse
