// The checks behind every key of a cluster file, and their messages.
#include "topology/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "sim/quantity_text.hpp"
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

void Fields::wrong_type(std::string_view key, const Value& value, std::string_view wanted) {
  complain(key, fmt::format("'{}' must be {}, not {}", key, wanted, kind_name(value)));
}

std::optional<std::string> Fields::text(std::string_view key) {
  const Value* value = any(key);
  if (!value) return {};
  if (const std::string* text = value->text()) return *text;
  wrong_type(key, *value, "a string");
  return {};
}

std::optional<bool> Fields::flag(std::string_view key) {
  const Value* value = any(key);
  if (!value) return {};
  if (const bool* flag = std::get_if<bool>(&value->data)) return *flag;
  wrong_type(key, *value, "true or false");
  return {};
}

std::optional<std::size_t> Fields::count(std::string_view key, std::size_t least,
                                         std::size_t most) {
  const Value* value = any(key);
  if (!value) return {};
  const std::int64_t* whole = std::get_if<std::int64_t>(&value->data);
  if (!whole) {
    wrong_type(key, *value, "a whole number");
    return {};
  }
  if (*whole < 0 || static_cast<std::size_t>(*whole) < least) {
    complain(key, fmt::format("'{}' must be at least {}, not {}", key, least, *whole));
    return {};
  }
  if (static_cast<std::size_t>(*whole) > most) {
    complain(key, fmt::format("'{}' must be at most {}, not {}", key, most, *whole));
    return {};
  }
  return static_cast<std::size_t>(*whole);
}

std::optional<double> Fields::number(std::string_view key) {
  const Value* value = any(key);
  if (!value) return {};
  if (const auto* whole = std::get_if<std::int64_t>(&value->data))
    return static_cast<double>(*whole);
  const double* real = std::get_if<double>(&value->data);
  if (real && std::isfinite(*real)) return *real;
  wrong_type(key, *value, "a finite number");
  return {};
}

template <class Parse>
auto Fields::quantity(std::string_view key, Parse parse, std::string_view example)
    -> std::optional<decltype(parse(std::string_view{}))> {
  const Value* value = any(key);
  if (!value) return {};
  const std::string* text = value->text();
  if (text) {
    try {
      return parse(*text);
    } catch (const InputError& error) {
      complain(key, fmt::format("{}: {}", key, error.problems().front().message));
    }
  } else if (const auto* whole = std::get_if<std::int64_t>(&value->data)) {
    complain(key, fmt::format("{}: missing unit: {}; write e.g. \"{}\"", key, *whole, example));
  } else if (const auto* real = std::get_if<double>(&value->data)) {
    complain(key, fmt::format("{}: missing unit: {}; write e.g. \"{}\"", key, *real, example));
  } else {
    wrong_type(key, *value, fmt::format("a string such as \"{}\"", example));
  }
  return {};
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
  const std::optional<std::string> word = text(key);
  if (!word) return {};
  const auto at = std::find(words.begin(), words.end(), *word);
  if (at != words.end()) return static_cast<std::size_t>(at - words.begin());
  const std::vector<std::string> candidates{words.begin(), words.end()};
  const std::string hint = did_you_mean(*word, candidates);
  complain(key,
           fmt::format("unknown {} '{}'{}", key, *word,
                       hint.empty() ? fmt::format("; one of {}", fmt::join(words, ", ")) : hint));
  return {};
}

const Value* Fields::table(std::string_view key) {
  const Value* value = any(key);
  if (!value || value->table()) return value;
  wrong_type(key, *value, "a table");
  return nullptr;
}

std::vector<const Value*> Fields::tables(std::string_view key) {
  const Value* value = any(key);
  std::vector<const Value*> found;
  if (!value) return found;
  if (!value->array()) {
    wrong_type(key, *value, "a list of tables");
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
