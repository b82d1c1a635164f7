// No lesson says a number that nobody answers for: those in words and formulas are found, and what
// a lesson says they are of the run, they are, wherever its controls stand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/base/error.hpp"
#include "tests/support/lesson_names.hpp"
#include "tools/teach/teach_numbers.hpp"
#include "tools/teach/teach_sheet.hpp"

namespace rehearse::lesson_numbers_test {
namespace {

std::vector<double> values_of(const std::vector<SaidNumber>& numbers) {
  std::vector<double> values;
  for (const SaidNumber& one : numbers) values.push_back(one.value);
  return values;
}

TEST(LessonNumbers, AreFoundInWordsAndFormulas) {
  using Values = std::vector<double>;
  EXPECT_EQ(values_of(numbers_in_words("Twice as many; half of eight, thirty-two of sixteen-bit")),
            (Values{2, 0.5, 8, 32, 16}));
  EXPECT_EQ(values_of(numbers_in_words("one at once, the first and only; often, weight, tenant")),
            Values{});
  EXPECT_EQ(values_of(numbers_in_formula("2 (n - 1) / n × 4.5 B + 64MiB")),
            (Values{2, 1, 4.5, 64}));
  EXPECT_EQ(values_of(numbers_in_formula("1F1B, ZB-H1, fp32, S₂   Huang et al. 2019")), Values{});
  EXPECT_EQ(values_of(numbers_in_formula("Patarasuk and Yuan 2009, of 2009")), Values{});
  EXPECT_EQ(values_of(numbers_in_formula("= 2019")), Values{2019});
}

std::string problem_of(const std::string& front, const std::string& reveal) {
  const std::string text =
      "+++\ntopic = \"t\"\nanswer = \"a\"\nunit = \"ms\"\n[values]\n"
      "a = \"step_time\"\nb = \"2 * n\"\nn = \"ranks\"\n" +
      front + "+++\n# T\n\nidea\n\n## Question\n\nhow long?\n\n## Reveal\n\n" + reveal + "\n";
  try {
    parse_lesson("99_x", text, "");
  } catch (const InputError& error) {
    return error.problems().front().message;
  }
  return "none";
}

TEST(LessonNumbers, AreMistakesWhereNobodyAnswersForThem) {
  const auto unknown = [](const char* number) {
    return fmt::format(
        "the number '{}' is neither a placeholder nor told of under [says] or [plain]", number);
  };
  EXPECT_EQ(problem_of("", "{a}, as before"), "none");
  EXPECT_EQ(problem_of("", "{a}, eight times as many"), unknown("eight"));
  EXPECT_EQ(problem_of("[says]\n\"eight times\" = \"n\"\n", "{a}, eight times as many"), "none");
  EXPECT_EQ(problem_of("[plain]\n\"two ways\" = \"why\"\n", "{a} in two ways"), "none");
  EXPECT_EQ(problem_of("[plain]\n\"two ways\" = \"why\"\n", "{a} in two ways, for two"),
            unknown("two"));
  EXPECT_EQ(problem_of("[says]\n\"eight times\" = \"n\"\n", "{a}"),
            "the text does not say 'eight times'");
  EXPECT_EQ(problem_of("[says]\n\"a while\" = \"n\"\n", "{a} for a while"),
            "'a while' has not one number");
  // A formula's numbers are those of the values that stand in it, and of what they are made of.
  EXPECT_EQ(problem_of("", "{a}\n\n    2 n = {b}"), "none");
  EXPECT_EQ(problem_of("", "{a}\n\n    3 n = {b}"), unknown("3"));
  EXPECT_EQ(problem_of("", "{a}\n\n    2 n = {n}"), unknown("2"));
  EXPECT_EQ(problem_of("", "{a} for `2 n` of them"), "none");
  EXPECT_EQ(problem_of("", "{a} for `7 n` of them"), unknown("7"));
}

class SaidNumbers : public testing::TestWithParam<Lesson> {};

void expect_said(const Lesson& lesson, const std::vector<std::string>& sets, bool in_reveal_only) {
  LessonSheet sheet(lesson, sets);
  const std::string where = sets.empty() ? "" : " with " + sets.front();
  for (const auto& [words, formula] : lesson.says) {
    const auto says = [&, &words = words](const LessonBlock& block) {
      return block.text.find(words) != std::string::npos;
    };
    if (in_reveal_only && std::none_of(lesson.reveal.begin(), lesson.reveal.end(), says)) continue;
    const double said = numbers_in_words(words).front().value, is = sheet.of(formula).value;
    EXPECT_LE(std::abs(is / said - 1), 0.02)
        << lesson.name << where << ": '" << words << "', but " << formula << " = " << is;
  }
}

TEST_P(SaidNumbers, AreWhatTheRunSays) { expect_said(GetParam(), {}, false); }

// Idea and question are told of the scenario as it is, the reveal wherever the controls stand.
TEST_P(SaidNumbers, StayTrueWhenControlsMove) {
  const Lesson& lesson = GetParam();
  if (lesson.says.empty()) return;
  for (const std::string& control : lesson.controls) {
    const std::size_t equals = control.find('='), last = control.rfind(',');
    const std::string key = control.substr(0, equals);
    for (const std::string& value :
         {control.substr(equals + 1, control.find(',') - equals - 1), control.substr(last + 1)})
      expect_said(lesson, {key + "=" + value}, true);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SaidNumbers, testing::ValuesIn(all_lessons()),
                         [](const testing::TestParamInfo<Lesson>& test) {
                           return "L" + test.param.name;
                         });

}  // namespace
}  // namespace rehearse::lesson_numbers_test
