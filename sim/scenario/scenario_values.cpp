// What each kind of key takes, how it is written, and what the docs say of it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/amount_text.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "topology/files/readings.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

template <class T>
std::string taken(Reading<T> reading, T& into) {
  if (reading.value) into = std::move(*reading.value);
  return std::move(reading.problem);
}

// One case for each kind of field.
struct Setter {
  Scenario& scenario;
  const Value& value;
  std::string_view word;

  std::string operator()(const TextField& f) const {
    return taken(read_text(value, word), f.at(scenario));
  }
  std::string operator()(const FileField& f) const {
    Reading<std::string> name = read_text(value, word);
    if (name.value && name.value->empty()) return fmt::format("{}: an empty name", word);
    if (name.value) name.value = path_beside(*name.value, value.place);
    return taken(std::move(name), f.at(scenario));
  }
  std::string operator()(const FlagField& f) const {
    return taken(read_flag(value, word), f.at(scenario));
  }
  std::string operator()(const CountField& f) const {
    return taken(read_count(value, word, f.least, f.most), f.at(scenario));
  }
  std::string operator()(const MaybeCountField& f) const {
    Reading<std::size_t> count = read_count(value, word, 1, f.most);
    if (count.value) f.at(scenario) = *count.value;
    return std::move(count.problem);
  }
  std::string operator()(const CountsField& f) const {
    const Array* items = value.array();
    if (!items) return wrong_type(word, value, "a list of whole numbers");
    std::vector<std::size_t> counts;
    for (const Value& item : *items) {
      const Reading<std::size_t> count = read_count(item, word, 0, f.most);
      if (!count.value) return count.problem;
      counts.push_back(*count.value);
    }
    f.at(scenario) = std::move(counts);
    return {};
  }
  std::string operator()(const ShareField& f) const {
    const Reading<double> share = read_number(value, word);
    if (!share.value) return share.problem;
    if (*share.value < 0 || *share.value >= 1)
      return fmt::format("'{}' must be from 0 to below 1, not {}", word, *share.value);
    f.at(scenario) = *share.value;
    return {};
  }
  std::string operator()(const MaybeNumberField& f) const {
    const Reading<double> number = read_number(value, word);
    if (!number.value) return number.problem;
    if (*number.value < 0) return fmt::format("'{}' must not be below 0", word);
    f.at(scenario) = *number.value;
    return {};
  }
  std::string operator()(const NumberField& f) const {
    const Reading<double> number = read_number(value, word);
    if (!number.value) return number.problem;
    if (!(*number.value >= f.least && *number.value <= f.most))
      return fmt::format("'{}' must be from {} to {}, not {}", word, f.least, f.most,
                         *number.value);
    f.at(scenario) = *number.value;
    return {};
  }
  std::string operator()(const TimeField& f) const {
    return taken(read_quantity(value, word, parse_time, "2us"), f.at(scenario));
  }
  std::string operator()(const AmountField& f) const {
    const Reading<double> amount =
        value.text() ? read_quantity(value, word, parse_amount, "300B") : read_number(value, word);
    if (!amount.value) return amount.problem;
    if (*amount.value <= 0) return fmt::format("'{}' must be above 0", word);
    f.at(scenario) = *amount.value;
    return {};
  }
  std::string operator()(const BytesField& f) const {
    const Reading<Bytes> bytes = read_quantity(value, word, parse_bytes, "25MiB");
    if (!bytes.value) return bytes.problem;
    if (bytes.value->count() == 0) return fmt::format("{}: must be above zero", word);
    f.at(scenario) = *bytes.value;
    return {};
  }
  std::string operator()(const ChoiceField& f) const {
    const Reading<std::size_t> choice = read_choice(value, word, f.words);
    if (choice.value) f.set(scenario, *choice.value);
    return choice.problem;
  }
  std::string operator()(const PriceField&) const {
    Reading<Price> price = read_quantity(value, word, parse_price, "2.50 USD");
    if (!price.value) return std::move(price.problem);
    scenario.training.price_per_gpu_hour = price.value->amount;
    scenario.training.currency = std::move(price.value->currency);
    return {};
  }
  std::string operator()(const DistributedOptimizerField&) const {
    const Reading<bool> flag = read_flag(value, word);
    if (flag.value) scenario.parallelism.zero_stage = *flag.value ? 1 : 0;
    return flag.problem;
  }
  std::string operator()(const FileOnlyField&) const {
    return fmt::format("'{}' has a meaning in a file only", word);
  }
};

// As TOML. What a scenario does not say has no text: 0 where 1 is the least.
struct Writer {
  Scenario& scenario;

  std::string operator()(const TextField& f) const { return toml_text(f.at(scenario)); }
  std::string operator()(const FileField& f) const { return toml_text(f.at(scenario)); }
  std::string operator()(const FlagField& f) const { return f.at(scenario) ? "true" : "false"; }
  std::string operator()(const CountField& f) const {
    const std::size_t count = f.at(scenario);
    return count < f.least ? "" : fmt::to_string(count);
  }
  std::string operator()(const MaybeCountField& f) const {
    const auto& count = f.at(scenario);
    return count ? fmt::to_string(*count) : "";
  }
  std::string operator()(const CountsField& f) const {
    return f.at(scenario).empty() ? "" : fmt::format("[{}]", fmt::join(f.at(scenario), ", "));
  }
  std::string operator()(const ShareField& f) const { return fmt::format("{}", f.at(scenario)); }
  std::string operator()(const MaybeNumberField& f) const {
    return f.at(scenario) ? fmt::format("{}", *f.at(scenario)) : "";
  }
  std::string operator()(const NumberField& f) const { return fmt::format("{}", f.at(scenario)); }
  std::string operator()(const TimeField& f) const { return toml_text(to_text(f.at(scenario))); }
  std::string operator()(const AmountField& f) const {
    return f.at(scenario) > 0 ? toml_text(to_text_amount(f.at(scenario))) : "";
  }
  std::string operator()(const BytesField& f) const {
    return f.at(scenario) == Bytes{0} ? "" : toml_text(to_text(f.at(scenario)));
  }
  std::string operator()(const ChoiceField& f) const { return toml_text(f.words[f.get(scenario)]); }
  std::string operator()(const PriceField&) const {
    const Training& t = scenario.training;
    return t.currency.empty() ? "" : toml_text(to_text(Price{t.price_per_gpu_hour, t.currency}));
  }
  std::string operator()(const DistributedOptimizerField&) const { return ""; }
  std::string operator()(const FileOnlyField&) const { return ""; }
};

struct TypeName {
  std::string operator()(const TextField&) const { return "text"; }
  std::string operator()(const FileField&) const { return "file"; }
  std::string operator()(const FlagField&) const { return "true or false"; }
  std::string operator()(const CountField& f) const {
    return f.most < 10 ? fmt::format("{} to {}", f.least, f.most) : "whole number";
  }
  std::string operator()(const MaybeCountField&) const { return "whole number"; }
  std::string operator()(const CountsField&) const { return "list of whole numbers"; }
  std::string operator()(const ShareField&) const { return "0 to below 1"; }
  std::string operator()(const MaybeNumberField&) const { return "number"; }
  std::string operator()(const NumberField& f) const {
    return fmt::format("{} to {}", f.least, f.most);
  }
  std::string operator()(const TimeField&) const { return "time"; }
  std::string operator()(const AmountField&) const { return "number"; }
  std::string operator()(const BytesField&) const { return "size"; }
  std::string operator()(const ChoiceField& f) const {
    return fmt::format("{}", fmt::join(f.words, ", "));
  }
  std::string operator()(const PriceField&) const { return "price"; }
  std::string operator()(const DistributedOptimizerField&) const { return "true or false"; }
  std::string operator()(const FileOnlyField& f) const { return std::string{f.type}; }
};

}  // namespace

std::string set_key(Scenario& scenario, const ScenarioKey& key, const Value& value,
                    std::string_view word) {
  std::string problem = std::visit(Setter{scenario, value, word}, key.field);
  if (problem.empty() && key.displace) key.displace(scenario);
  return problem;
}

std::string value_text(const ScenarioKey& key, const Scenario& scenario) {
  // The fields give references to what may be set; a copy may be.
  Scenario copy = scenario;
  return std::visit(Writer{copy}, key.field);
}

namespace {

// The default, as far as there is one to show.
std::string default_text(const ScenarioKey& key) {
  std::string text = value_text(key, {});
  return text == "\"\"" ? "" : text;
}

}  // namespace

std::string scenario_keys_markdown() {
  std::string text = "| key | short | is | default | |\n|---|---|---|---|---|\n";
  std::string_view table;
  for (const ScenarioKey& key : scenario_keys()) {
    if (std::exchange(table, key.table) != key.table)
      text += fmt::format("| **[{}]** | | | | |\n", key.table);
    const std::string fallback = default_text(key);
    text += fmt::format("| `{}` |{}| {} |{}| {} |\n", key.name,
                        key.alias.empty() ? " " : fmt::format(" `{}` ", key.alias),
                        std::visit(TypeName{}, key.field),
                        fallback.empty() ? " " : fmt::format(" `{}` ", fallback), key.help);
  }
  return text;
}

std::string scenario_keys_help() {
  std::string text;
  std::string_view table;
  for (const ScenarioKey& key : scenario_keys()) {
    if (std::exchange(table, key.table) != key.table) text += fmt::format("\n[{}]\n", key.table);
    const std::string fallback = default_text(key);
    std::string help{key.help};
    std::erase(help, '`');
    text += fmt::format("  {}{}\n      {}{}{}{}\n", key.name,
                        key.alias.empty() ? "" : fmt::format(" ({})", key.alias),
                        std::visit(TypeName{}, key.field),
                        fallback.empty() ? "" : fmt::format(", default {}", fallback),
                        help.empty() ? "" : "; ", help);
  }
  return text;
}

}  // namespace rehearse
