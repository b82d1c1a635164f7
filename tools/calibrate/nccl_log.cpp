// Columns as in tools/output/bench_table.cpp; keys as nccl-tests' util.cu writes them.
#include "tools/calibrate/nccl_log.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/error.hpp"

namespace rehearse {

namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

std::optional<double> number(std::string_view word) {
  double value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

bool is_sound(double size, double microseconds) {
  return size >= 0 && size < 1e15 && microseconds > 0 && microseconds < 1e12;
}

NcclRow row(double size, double microseconds) {
  return {Bytes{static_cast<std::int64_t>(size)}, Seconds{microseconds * 1e-6}};
}

// size count type redop root | time algbw busbw #wrong | time …
void read_line(std::string_view line, const Place& place, NcclLog& log) {
  constexpr std::string_view version = "# nccl-tests version ";
  if (line.starts_with(version)) log.version = line.substr(version.size());
  const std::vector<std::string_view> words = words_of(line);
  if (words.empty() || !number(words[0])) return;  // a comment, or what mpirun said
  if (words.size() < 8 || !number(words[1])) return;
  const std::optional<double> size = number(words[0]);
  std::optional<double> time = number(words[5]);
  if (!time && words.size() >= 10) time = number(words[9]);
  if (!time || !is_sound(*size, *time))
    throw InputError(place, fmt::format("'{}' is no time in microseconds", words[5]));
  log.rows.push_back(row(*size, *time));
}

void read_object(const nlohmann::json& value, NcclLog& log) {
  if (value.is_array())
    for (const nlohmann::json& item : value) read_object(item, log);
  if (!value.is_object()) return;
  const auto get = [](const nlohmann::json& from, const char* key) -> std::optional<double> {
    const auto found = from.find(key);
    if (found == from.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  std::optional<double> size = get(value, "size"), time;
  for (const char* column : {"out_of_place", "in_place"})
    if (!time && value.contains(column) && value[column].is_object())
      time = get(value[column], "time");
  if (!size) size = get(value, "size_bytes");
  if (!time) time = get(value, "time_us");
  if (size && time && is_sound(*size, *time)) log.rows.push_back(row(*size, *time));
  for (const auto& [key, item] : value.items())
    if (item.is_structured()) read_object(item, log);
}

}  // namespace

NcclLog parse_nccl_log(std::string_view text, const std::string& file) {
  NcclLog log;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
    if (document.is_discarded()) throw InputError(Place{file}, "is no JSON");
    read_object(document, log);
  } else {
    std::uint32_t number_of_line = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      read_line(text.substr(at, end - at), {file, ++number_of_line, 0}, log);
      at = end + 1;
    }
  }
  if (log.rows.empty())
    throw InputError(Place{file}, "has no row of nccl-tests: sizes, then times in us");
  return log;
}

}  // namespace rehearse
