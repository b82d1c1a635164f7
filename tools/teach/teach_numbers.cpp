// Placeholders are blanked first, so that places in the text stay what they are.
#include "tools/teach/teach_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>
#include <utility>

#include "sim/base/decimal.hpp"

namespace rehearse {

namespace {

using Said = std::pair<std::string_view, double>;
constexpr std::array number_words{
    Said{"two", 2},          Said{"three", 3},
    Said{"four", 4},         Said{"five", 5},
    Said{"six", 6},          Said{"seven", 7},
    Said{"eight", 8},        Said{"nine", 9},
    Said{"ten", 10},         Said{"eleven", 11},
    Said{"twelve", 12},      Said{"sixteen", 16},
    Said{"twenty", 20},      Said{"thirty", 30},
    Said{"thirty-one", 31},  Said{"thirty-two", 32},
    Said{"sixty-four", 64},  Said{"hundred", 100},
    Said{"thousand", 1000},  Said{"thousands", 1000},
    Said{"million", 1e6},    Said{"twice", 2},
    Said{"thrice", 3},       Said{"double", 2},
    Said{"half", 0.5},       Said{"halves", 0.5},
    Said{"third", 1.0 / 3},  Said{"thirds", 1.0 / 3},
    Said{"quarter", 0.25},   Said{"quarters", 0.25},
    Said{"fifth", 0.2},      Said{"eighth", 0.125},
    Said{"tenth", 0.1},      Said{"sixteenth", 1.0 / 16},
    Said{"hundredth", 0.01}, Said{"thousandth", 0.001},
};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_part(char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.'; }

/// Blanks what stands between the marks, and the marks.
std::string without(std::string text, char open, char close) {
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    const std::size_t end = std::min(text.find(close, at + 1), text.size() - 1);
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(at),
              text.begin() + static_cast<std::ptrdiff_t>(end) + 1, ' ');
  }
  return text;
}

/// Only what stands between the marks.
std::string code_of(const std::string& text) {
  std::string code(text.size(), ' ');
  bool is_code = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`')
      is_code = !is_code;
    else if (is_code)
      code[i] = text[i];
  }
  return code;
}

/// "Huang et al. 2019", "Patarasuk and Yuan 2009": a name and then four digits.
bool is_year(std::string_view text, const SaidNumber& number) {
  const std::string_view before = text.substr(0, number.begin);
  return number.value >= 1900 && number.value < 2100 && before.size() > 1 && before.back() == ' ' &&
         (is_letter(before[before.size() - 2]) || before.ends_with("al. "));
}

/// All numbers of the formulas that these names stand for, and of those they are made of.
void add_numbers(const Lesson& lesson, std::string_view formula, std::set<std::string>& seen,
                 std::set<double>& numbers) {
  for (const SaidNumber& one : numbers_in_formula(formula)) numbers.insert(one.value);
  for (std::size_t at = 0; at < formula.size();) {
    std::size_t end = at;
    while (end < formula.size() && (is_part(formula[end]) && formula[end] != '-')) ++end;
    const std::string name{formula.substr(at, end - at)};
    at = std::max(end, at + 1);
    for (const auto& [value, made_of] : lesson.values)
      if (value == name && seen.insert(name).second) add_numbers(lesson, made_of, seen, numbers);
  }
}

std::set<double> numbers_beside(const Lesson& lesson, const LessonBlock& block) {
  std::set<std::string> seen;
  std::set<double> numbers;
  // A formula answers for itself; code in a sentence is about any value of the lesson.
  if (!block.is_formula)
    for (const auto& [name, formula] : lesson.values) add_numbers(lesson, formula, seen, numbers);
  for (std::size_t at = block.text.find('{'); at != std::string::npos;
       at = block.text.find('{', at + 1)) {
    const std::size_t end = std::min(block.text.find('}', at), block.text.find(' ', at));
    add_numbers(lesson, block.text.substr(at + 1, end - at - 1), seen, numbers);
  }
  return numbers;
}

/// Whether the number is part of these words somewhere in the text.
bool covers(std::string_view text, std::string_view words, const SaidNumber& number) {
  for (std::size_t at = text.find(words); at != std::string_view::npos;
       at = text.find(words, at + 1))
    if (at <= number.begin && number.end <= at + words.size()) return true;
  return false;
}

bool answers_for(const Lesson& lesson, std::string_view text, const SaidNumber& number) {
  for (const auto* table : {&lesson.says, &lesson.plain})
    for (const auto& [words, why] : *table)
      if (covers(text, words, number)) return true;
  return false;
}

void check_block(const Lesson& lesson, const LessonBlock& block, Problems& problems) {
  const std::string text = without(block.text, '{', '}');
  const auto complain = [&](const SaidNumber& number) {
    problems.push_back(
        {block.place, fmt::format("the number '{}' is neither a placeholder nor told of under "
                                  "[says] or [plain]",
                                  text.substr(number.begin, number.end - number.begin))});
  };
  for (const SaidNumber& number : numbers_in_words(without(text, '`', '`')))
    if (!answers_for(lesson, block.text, number)) complain(number);
  const std::set<double> beside = numbers_beside(lesson, block);
  for (const SaidNumber& number : numbers_in_formula(block.is_formula ? text : code_of(text)))
    if (!beside.contains(number.value) && !answers_for(lesson, block.text, number))
      complain(number);
}

void check_words(const Lesson& lesson, std::string_view words, bool is_said, Problems& problems) {
  const auto says = [&](const LessonBlock& block) {
    return block.text.find(words) != std::string::npos;
  };
  const std::size_t numbers =
      numbers_in_words(words).size() + (is_said ? 0 : numbers_in_formula(words).size());
  if (is_said ? numbers != 1 : numbers == 0)
    problems.push_back({lesson.place, fmt::format("'{}' has not one number", words)});
  if (lesson.title.find(words) == std::string::npos &&
      std::none_of(lesson.idea.begin(), lesson.idea.end(), says) &&
      std::none_of(lesson.question.begin(), lesson.question.end(), says) &&
      std::none_of(lesson.reveal.begin(), lesson.reveal.end(), says))
    problems.push_back({lesson.place, fmt::format("the text does not say '{}'", words)});
}

}  // namespace

std::vector<SaidNumber> numbers_in_words(std::string_view text) {
  std::vector<SaidNumber> numbers;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && (is_letter(text[end]) || text[end] == '-')) ++end;
    std::string word{text.substr(at, end - at)};
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // "sixteen-bit" says sixteen, "thirty-two" is a number itself.
    for (std::string_view part = word; !part.empty();) {
      const auto found = std::find_if(number_words.begin(), number_words.end(),
                                      [&](const Said& one) { return one.first == part; });
      if (found != number_words.end()) numbers.push_back({at, at + part.size(), found->second});
      if (found != number_words.end() || part.find('-') == std::string_view::npos) break;
      part = part.substr(0, part.rfind('-'));
    }
    at = std::max(end, at + 1);
  }
  return numbers;
}

std::vector<SaidNumber> numbers_in_formula(std::string_view text) {
  std::vector<SaidNumber> numbers;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_part(text[end])) ++end;
    if (end == at || !is_digit(text[at])) {
      at = std::max(end, at + 1);
      continue;
    }
    std::size_t digits = at;
    while (digits < end && (is_digit(text[digits]) || text[digits] == '.')) ++digits;
    while (digits > at && text[digits - 1] == '.') --digits;
    // A unit may follow (4B, 64MiB), but what goes on with digits is a name (1F1B).
    const std::string_view rest = text.substr(digits, end - digits);
    const bool is_name = std::any_of(rest.begin(), rest.end(), is_digit);
    SaidNumber number{at, digits, 0};
    read_decimal(text.data() + at, text.data() + digits, number.value);
    if (!is_name && !is_year(text, number)) numbers.push_back(number);
    at = end;
  }
  return numbers;
}

void check_numbers(const Lesson& lesson, Problems& problems) {
  check_block(lesson, {false, lesson.title, lesson.place}, problems);
  for (const auto* part : {&lesson.idea, &lesson.question, &lesson.reveal})
    for (const LessonBlock& block : *part) check_block(lesson, block, problems);
  for (const auto& [words, formula] : lesson.says) check_words(lesson, words, true, problems);
  for (const auto& [words, why] : lesson.plain) check_words(lesson, words, false, problems);
}

}  // namespace rehearse
