// Recursive descent that computes as it reads: formulas are short, and read when they are needed.
#include "tools/teach/teach_formula.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "sim/base/decimal.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity_text.hpp"

namespace rehearse {

namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class Reader {
 public:
  Reader(std::string_view text, const Meaning& meaning) : text_{text}, meaning_{meaning} {}

  Amount all() {
    const Amount value = sum();
    if (at_ < text_.size()) fail(fmt::format("'{}' is unexpected", text_.substr(at_, 1)));
    return value;
  }

 private:
  Amount sum() {
    Amount value = product();
    while (true) {
      if (take('+'))
        value = value + product();
      else if (take('-'))
        value = value - product();
      else
        return value;
    }
  }

  Amount product() {
    Amount value = atom();
    while (true) {
      if (take('*'))
        value = value * atom();
      else if (take('/'))
        value = value / atom();
      else
        return value;
    }
  }

  Amount atom() {
    skip();
    if (depth_ > 50) fail("too many brackets");
    if (take('(')) {
      ++depth_;
      const Amount value = sum();
      --depth_;
      need(')');
      return value;
    }
    if (at_ < text_.size() && is_digit(text_[at_])) return number();
    if (at_ < text_.size() && is_letter(text_[at_])) return named();
    fail("a number or a name is missing");
  }

  Amount number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const std::from_chars_result read = read_decimal(begin, text_.data() + text_.size(), value);
    std::size_t end = static_cast<std::size_t>(read.ptr - text_.data());
    const std::size_t first = at_;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    const std::string_view word = text_.substr(first, end - first);
    const bool has_unit = begin + word.size() != read.ptr;
    at_ = end;
    skip();
    if (!has_unit) return {value, {}};
    return word.ends_with('s') ? Amount{parse_time(word).seconds().count(), {.seconds = 1}}
                               : Amount{static_cast<double>(parse_bytes(word).count()), {0, 1, 0}};
  }

  Amount named() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    skip();
    if (take('(')) return function(name);
    std::vector<std::string> with;
    if (at_ < text_.size() && text_[at_] == '[') with = bracketed();
    return meaning_(name, with);
  }

  // Values may have brackets of their own: slow_ranks=[3].
  std::vector<std::string> bracketed() {
    std::vector<std::string> words(1);
    int open = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      open += (c == '[') - (c == ']');
      if (open == 0) break;
      if (c == '[' && open == 1) continue;
      if (c == ',' && open == 1)
        words.emplace_back();
      else if (c != ' ' || !words.back().empty())
        words.back() += c;
    }
    need(']');
    return words;
  }

  Amount function(std::string_view name) {
    std::vector<Amount> given{sum()};
    while (take(',')) given.push_back(sum());
    need(')');
    const Amount first = given.front();
    const auto plain = [&](double value) -> Amount {
      if (given.size() != 1 || !(first.dimensions == Dimensions{}))
        fail(fmt::format("{} takes one plain number", name));
      return {value, {}};
    };
    if (name == "ceil") return plain(std::ceil(first.value));
    if (name == "log2") return plain(std::log2(first.value));
    if (name == "sqrt") return plain(std::sqrt(first.value));
    if (name != "min" && name != "max") fail(fmt::format("there is no function '{}'", name));
    Amount best = first;
    for (const Amount& one : given) {
      const double more = (one - best).value;
      if (name == "min" ? more < 0 : more > 0) best = one;
    }
    return best;
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    skip();
    return true;
  }
  void need(char c) {
    if (!take(c)) fail(fmt::format("'{}' is missing", c));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("formula '{}': {}", text_, what));
  }

  std::string_view text_;
  const Meaning& meaning_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Amount evaluate(std::string_view formula, const Meaning& meaning) {
  return Reader(formula, meaning).all();
}

}  // namespace rehearse
