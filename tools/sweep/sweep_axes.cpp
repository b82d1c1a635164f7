// Ranges are written out as lists; the scenario's own table of keys reads those.
#include "tools/sweep/sweep_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "sim/base/error.hpp"

namespace rehearse {

namespace {

constexpr std::int64_t most_values = 10'000;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

[[noreturn]] void fail(std::string_view axis, const std::string& why) {
  throw InputError({fmt::format("--axis {}", axis)}, why);
}

// "1..64*2" as "1,2,4,8,16,32,64"; what is no range stays.
std::string counted_out(std::string_view item, std::string_view axis) {
  const std::size_t dots = item.find("..");
  if (dots == item.npos) return std::string{item};
  std::string_view last = item.substr(dots + 2);
  const std::size_t sign = last.find_first_of("*+");
  const char how = sign == last.npos ? '+' : last[sign];
  const auto begin = whole_number(item.substr(0, dots));
  const auto step = sign == last.npos ? 1 : whole_number(last.substr(sign + 1));
  const auto end = whole_number(last.substr(0, sign));
  if (!begin || !end || !step)
    fail(axis, fmt::format("'{}' is no range; write 1..8, 8..64+8 or 1..64*2", item));
  if (*begin > *end) fail(axis, fmt::format("the range '{}' runs upward", item));
  if (how == '*' ? *step < 2 || *begin < 1 : *step < 1)
    fail(axis, fmt::format("the range '{}' never ends", item));
  std::string list;
  std::int64_t count = 0;
  for (std::int64_t value = *begin; value <= *end;) {
    list += fmt::format("{}{}", list.empty() ? "" : ",", value);
    if (++count > most_values)
      fail(axis, fmt::format("the range '{}' has more than {} values", item, most_values));
    if (how == '*' ? value > *end / *step : value > *end - *step) break;
    value = how == '*' ? value * *step : value + *step;
  }
  return list;
}

std::string text_of(const Value& value) {
  if (const std::string* text = value.text()) return *text;
  return to_toml(value);
}

}  // namespace

bool Axis::changes_cluster() const {
  const Setting& first = settings.front();
  if (first.table == "cluster") return true;
  // What machine_for() and a calibration read.
  constexpr std::string_view of_the_machine[] = {"calibration",         "cuda_graph",
                                                 "graph_node_overhead", "slow_cables",
                                                 "slow_cable_factor",   "slow_cable_latency"};
  return first.key != nullptr && std::find(std::begin(of_the_machine), std::end(of_the_machine),
                                           first.key->name) != std::end(of_the_machine);
}

bool Axis::scales() const {
  const ScenarioKey* const key = settings.front().key;
  return key != nullptr && key->table == "cluster" &&
         (key->name == "nodes" || key->name == "gpus_per_node");
}

Axis parse_sweep_axis(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  std::string plain{text.substr(0, equals)};
  std::string_view left = text.substr(equals);
  // Ranges hold no brackets and no quotes, so a plain search for commas finds them.
  if (left.find("..") != left.npos && left.find_first_of("\"'[{") == left.npos) {
    left.remove_prefix(1);
    for (char joint = '=';; joint = ',') {
      const std::size_t end = std::min(left.find(','), left.size());
      plain += joint + counted_out(left.substr(0, end), text);
      if (end == left.size()) break;
      left.remove_prefix(end + 1);
    }
  } else {
    plain += left;
  }
  Axis axis{.name = {}, .settings = parse_axis(plain), .values = {}};
  axis.name = axis.settings.front().word;
  for (const Setting& setting : axis.settings) axis.values.push_back(text_of(setting.value));
  for (std::size_t i = 0; i < axis.values.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (axis.values[i] == axis.values[j])
        fail(text, fmt::format("{} is there twice", axis.values[i]));
  return axis;
}

std::size_t point_count(const std::vector<Axis>& axes) {
  std::size_t count = 1;
  constexpr std::size_t most = 10'000'000;
  for (const Axis& axis : axes) {
    count *= axis.settings.size();
    if (count > most)
      throw InputError(fmt::format("the axes make more than {} points; leave some out", most));
  }
  return count;
}

std::vector<std::size_t> coordinates_of(const std::vector<Axis>& axes, std::size_t point) {
  std::vector<std::size_t> at(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    at[a] = point % axes[a].settings.size();
    point /= axes[a].settings.size();
  }
  return at;
}

}  // namespace rehearse
