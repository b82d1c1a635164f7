// Numbers are read with from_chars: the same everywhere, and all of the cell or nothing.
#include "tools/accuracy/measured_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

template <class Number>
std::optional<Number> parsed(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

}  // namespace

const std::string* MeasuredCells::find(std::string_view column) const {
  const auto at = std::find(table_.columns.begin(), table_.columns.end(), column);
  if (at == table_.columns.end()) return nullptr;
  return &row_->cells[static_cast<std::size_t>(at - table_.columns.begin())];
}

bool MeasuredCells::has_column(std::string_view column) const {
  return std::find(table_.columns.begin(), table_.columns.end(), column) != table_.columns.end();
}

void MeasuredCells::complain(std::string_view column, std::string message) {
  const auto at = std::find(table_.columns.begin(), table_.columns.end(), column);
  ASSERT(at != table_.columns.end());
  const auto start = row_->starts[static_cast<std::size_t>(at - table_.columns.begin())];
  problems_.push_back(
      {{file_, start.line, start.column}, fmt::format("{}: {}", column, std::move(message))});
}

std::string MeasuredCells::text(std::string_view column) {
  const std::string* cell = find(column);
  if (cell && !cell->empty()) return *cell;
  complain(column, "is empty");
  return {};
}

std::string MeasuredCells::note(std::string_view column) const {
  const std::string* cell = find(column);
  return cell ? *cell : std::string{};
}

std::string MeasuredCells::word(std::string_view column,
                                std::initializer_list<std::string_view> words) {
  const std::string* cell = find(column);
  const std::string given = cell ? *cell : std::string{};
  if (std::find(words.begin(), words.end(), given) != words.end()) return given;
  const std::vector<std::string> known{words.begin(), words.end()};
  const std::string hint = did_you_mean(given, known);
  complain(column, fmt::format("'{}' is none of {}{}", given, fmt::join(known, ", "), hint));
  return std::string{*words.begin()};
}

std::int64_t MeasuredCells::size(std::string_view column, std::int64_t least, std::int64_t most) {
  const std::string* cell = find(column);
  const auto number = parsed<std::int64_t>(cell ? *cell : "");
  if (number && *number >= least && *number <= most) return *number;
  complain(column, fmt::format("'{}' must be a whole number from {} to {}", cell ? *cell : "",
                               least, most));
  return least;
}

std::size_t MeasuredCells::count(std::string_view column, std::size_t least, std::size_t most) {
  return static_cast<std::size_t>(
      size(column, static_cast<std::int64_t>(least), static_cast<std::int64_t>(most)));
}

std::optional<std::int64_t> MeasuredCells::maybe_size(std::string_view column, std::int64_t most) {
  if (note(column).empty()) return {};
  return size(column, 1, most);
}

std::optional<double> MeasuredCells::number(std::string_view column, std::string_view what,
                                            bool zero) {
  const std::string* cell = find(column);
  const auto number = parsed<double>(cell ? *cell : "");
  // Beyond this nobody measured anything, and products of a few such numbers stay finite.
  constexpr double most = 1e18, least = 1e-18;
  const bool is_zero = number && *number == 0;
  if (number && std::isfinite(*number) && *number <= most &&
      (*number >= least || (zero && is_zero)))
    return number;
  complain(column, fmt::format("'{}' must be {}", cell ? *cell : "", what));
  return {};
}

double MeasuredCells::positive(std::string_view column) {
  return number(column, "a number above 0", false).value_or(1);
}

std::optional<double> MeasuredCells::maybe_positive(std::string_view column) {
  if (note(column).empty()) return {};
  return number(column, "a number above 0, or empty", false);
}

double MeasuredCells::amount(std::string_view column) {
  return number(column, "a number, 0 or more", true).value_or(0);
}

bool MeasuredCells::flag(std::string_view column) { return word(column, {"0", "1"}) == "1"; }

std::optional<bool> MeasuredCells::maybe_flag(std::string_view column) {
  if (note(column).empty()) return {};
  const std::string given = word(column, {"unknown", "0", "1"});
  if (given == "unknown") return {};
  return given == "1";
}

}  // namespace rehearse
