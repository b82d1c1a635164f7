// The checks behind every key of a cluster file, and their messages.
#include "topology/files/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/quantity_text.hpp"
#include "topology/files/readings.hpp"
#include "topology/topology.hpp"

namespace rehearse {

void throw_if_any(Problems problems) {
  if (problems.empty()) return;
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.file, a.place.line, a.place.column) <
           std::tie(b.place.file, b.place.line, b.place.column);
  });
  throw InputError(std::move(problems));
}

Fields::Fields(const Value& table, std::string what, Problems& problems)
    : table_{table}, what_{std::move(what)}, problems_{problems} {
  if (!table.table())
    problems_.push_back(
        {table.place, fmt::format("{} must be a table, not {}", what_, kind_name(table))});
}

const Value* Fields::any(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return table_.find(key);
}

Place Fields::place_of(std::string_view key) const {
  const Value* value = table_.find(key);
  return value ? value->place : table_.place;
}

void Fields::complain(std::string_view key, std::string message) {
  problems_.push_back({place_of(key), std::move(message)});
}

template <class Read>
auto Fields::take(std::string_view key, Read read) -> decltype(read(Value{}).value) {
  const Value* value = any(key);
  if (!value) return {};
  auto reading = read(*value);
  if (!reading.value) complain(key, std::move(reading.problem));
  return std::move(reading.value);
}

std::optional<std::string> Fields::text(std::string_view key) {
  return take(key, [&](const Value& value) { return read_text(value, key); });
}

std::optional<bool> Fields::flag(std::string_view key) {
  return take(key, [&](const Value& value) { return read_flag(value, key); });
}

std::optional<std::size_t> Fields::count(std::string_view key, std::size_t least,
                                         std::size_t most) {
  return take(key, [&](const Value& value) { return read_count(value, key, least, most); });
}

std::optional<double> Fields::number(std::string_view key) {
  return take(key, [&](const Value& value) { return read_number(value, key); });
}

template <class T>
std::optional<T> Fields::quantity(std::string_view key, T (*parse)(std::string_view),
                                  std::string_view example) {
  return take(key, [&](const Value& value) { return read_quantity(value, key, parse, example); });
}

std::optional<BytesPerSecond> Fields::bandwidth(std::string_view key) {
  const auto rate = quantity(key, parse_bandwidth, "400Gbps");
  if (!rate || rate->count() > 0) return rate;
  complain(key, fmt::format("{}: must be above zero", key));
  return {};
}

std::optional<Time> Fields::time(std::string_view key) {
  const auto time = quantity(key, parse_time, "2us");
  if (!time || *time <= longest_latency) return time;
  complain(key, fmt::format("{}: more than 1 s is no latency of a machine", key));
  return {};
}

std::optional<Time> Fields::duration(std::string_view key) {
  constexpr Time longest = 3'600'000'000'000 * Time::picoseconds(1000);
  const auto time = quantity(key, parse_time, "2us");
  if (!time || (*time > Time{} && *time <= longest)) return time;
  complain(key, fmt::format("{}: must be above zero and at most an hour", key));
  return {};
}

std::optional<Bytes> Fields::bytes(std::string_view key) {
  return quantity(key, parse_bytes, "80GB");
}

std::optional<FlopsPerSecond> Fields::flops_rate(std::string_view key) {
  const auto rate = quantity(key, parse_flops_rate, "989TFLOPS");
  if (!rate || rate->count() > 0) return rate;
  complain(key, fmt::format("{}: must be above zero", key));
  return {};
}

std::optional<std::size_t> Fields::choice(std::string_view key,
                                          std::span<const std::string_view> words) {
  return take(key, [&](const Value& value) { return read_choice(value, key, words); });
}

const Value* Fields::table(std::string_view key) {
  const Value* value = any(key);
  if (!value || value->table()) return value;
  complain(key, wrong_type(key, *value, "a table"));
  return nullptr;
}

std::vector<const Value*> Fields::tables(std::string_view key) {
  const Value* value = any(key);
  std::vector<const Value*> found;
  if (!value) return found;
  if (!value->array()) {
    complain(key, wrong_type(key, *value, "a list of tables"));
    return found;
  }
  for (const Value& item : *value->array()) found.push_back(&item);
  return found;
}

void Fields::require(std::string_view key) {
  if (table_.table() && !any(key)) missing_.emplace_back(key);
}

void Fields::finish_without_kind() {
  for (const std::string& key : missing_)
    problems_.push_back({table_.place, fmt::format("{} needs the key '{}'", what_, key)});
}

void Fields::finish() {
  if (!table_.table()) return;
  for (const Member& member : *table_.table()) {
    if (std::find(known_.begin(), known_.end(), member.key) != known_.end()) continue;
    const std::string hint = did_you_mean(member.key, known_);
    problems_.push_back({member.key_place, fmt::format("unknown key '{}'{}", member.key, hint)});
    std::erase_if(missing_, [&](const std::string& key) {
      return hint == fmt::format("; did you mean '{}'?", key);
    });
  }
  finish_without_kind();
}

}  // namespace rehearse
