// Lessons: every one reads and runs, its answer comes as near to the textbook's formula as it says,
// and no figure of its text is typed. What each of them shows is in tests/golden/lessons.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "sim/base/error.hpp"
#include "tests/support/lesson_names.hpp"
#include "tools/teach/teach_formula.hpp"
#include "tools/teach/teach_sheet.hpp"

namespace rehearse::lessons_test {
namespace {

std::string problem_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.problems().front().message;
  }
  return "none";
}

class EveryLesson : public testing::TestWithParam<Lesson> {};

TEST_P(EveryLesson, ComesAsNearToItsFormulaAsItSays) {
  const Lesson& lesson = GetParam();
  LessonSheet sheet(lesson);
  const Amount answer = sheet.answer();
  EXPECT_TRUE(std::isfinite(answer.value)) << lesson.name;
  EXPECT_TRUE(unit(lesson.unit).dimensions == answer.dimensions) << lesson.name;
  for (const auto& [name, formula] : lesson.values)
    EXPECT_TRUE(std::isfinite(sheet.value(name).value)) << name << " = " << formula;
  if (lesson.closed.empty()) return;
  const Amount closed = sheet.value(lesson.closed);
  EXPECT_TRUE(closed.dimensions == answer.dimensions) << lesson.name;
  EXPECT_LE(std::abs(answer.value / closed.value - 1), lesson.agrees)
      << to_text(answer, lesson.unit) << " simulated, " << to_text(closed, lesson.unit)
      << " by the formula";
}

// What a text says in words (faster, the best, it fits) is true of the run, and a lesson without a
// formula says something that could be wrong.
TEST_P(EveryLesson, SaysInWordsWhatTheRunSays) {
  const Lesson& lesson = GetParam();
  EXPECT_GE(lesson.holds.size() + (lesson.closed.empty() ? 0 : 2), 2u) << lesson.name;
  LessonSheet sheet(lesson);
  for (const std::string& claim : lesson.holds)
    EXPECT_TRUE(sheet.holds(claim)) << lesson.name << ": " << claim;
}

// Each control must change what the learner sees, and none may break the lesson.
TEST_P(EveryLesson, RunsWithEveryControlAtItsEnds) {
  const Lesson& lesson = GetParam();
  for (const std::string& control : lesson.controls) {
    const std::size_t equals = control.find('='), last = control.rfind(',');
    const std::string key = control.substr(0, equals);
    const std::string first = control.substr(equals + 1, control.find(',') - equals - 1);
    for (const std::string& value : {first, control.substr(last + 1)}) {
      try {
        LessonSheet sheet(lesson, {key + "=" + value});
        EXPECT_TRUE(std::isfinite(sheet.answer().value)) << lesson.name << ": " << key;
        for (const LessonBlock& block : lesson.reveal) EXPECT_NE(sheet.filled(block), "");
      } catch (const InputError& error) {
        ADD_FAILURE() << lesson.name << ": " << key << "=" << value << ": "
                      << error.problems().front().message;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryLesson, testing::ValuesIn(all_lessons()),
                         [](const testing::TestParamInfo<Lesson>& test) {
                           return "L" + test.param.name;
                         });

TEST(Lessons, CoverWhatIsToBeTaughtAndAreNumberedInOrder) {
  const std::vector<Lesson> lessons = all_lessons();
  EXPECT_GE(lessons.size(), 28u);
  EXPECT_EQ(lesson_texts().size(), lesson_scenarios().size());
  std::set<std::string> topics;
  for (std::size_t i = 0; i < lessons.size(); ++i) {
    EXPECT_EQ(lessons[i].number(), fmt::format("{:02}", i + 1));
    EXPECT_TRUE(topics.insert(lessons[i].topic).second) << lessons[i].topic;
  }
}

// Each is what one of the lessons is about: its topic, its title or its text says so.
constexpr const char* taught[] = {"time = work /",
                                  "parallel efficiency",
                                  "Amdahl",
                                  "Gustafson",
                                  "arge batches",
                                  "LARS",
                                  "single program, multiple data",
                                  "multiple programs",
                                  "Strong scaling",
                                  "Weak scaling",
                                  "samples of the batch",
                                  "im2col",
                                  "halo",
                                  "ring attention",
                                  "mean gradient",
                                  "broadcast",
                                  "slow GPU",
                                  "synchronous",
                                  "Asynchronous",
                                  "staleness",
                                  "parameter server",
                                  "Request and response",
                                  "Pipelined",
                                  "alpha",
                                  "all-reduce",
                                  "ring",
                                  "two trees",
                                  "crossover",
                                  "hierarchical",
                                  "different devices",
                                  "does not fit",
                                  "bubble",
                                  "micro-batches",
                                  "best micro-batch",
                                  "1F1B",
                                  "nterleaved",
                                  "ero bubble",
                                  "ecomputation",
                                  "accumulation",
                                  "fusion",
                                  "buckets",
                                  "streams",
                                  "compression",
                                  "Momentum",
                                  "local SGD",
                                  "Post-local SGD",
                                  "adaptive",
                                  "white list",
                                  "black list",
                                  "oss scaling",
                                  "overflow",
                                  "ZeRO",
                                  "rail",
                                  "Hybrid",
                                  "Fitting your own machine"};

TEST(Lessons, TeachEveryTopic) {
  std::vector<std::string> texts;
  for (const Lesson& lesson : all_lessons()) {
    std::string& text = texts.emplace_back(lesson.topic + " " + lesson.title);
    for (const auto* part : {&lesson.idea, &lesson.question, &lesson.reveal})
      for (const LessonBlock& block : *part) text += " " + block.text;
  }
  for (const char* topic : taught)
    EXPECT_TRUE(std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return text.find(topic) != std::string::npos;
    })) << topic;
}

std::string lesson_text(const std::string& front, const std::string& body) {
  return "+++\n" + front + "\n+++\n" + body;
}
const std::string good_front =
    "topic = \"t\"\nanswer = \"a\"\nunit = \"ms\"\n[values]\na = \"step_time\"";
const std::string good_body = "# T\n\nidea\n\n## Question\n\nhow long?\n\n## Reveal\n\n{a}\n";

TEST(LessonFile, TellsEveryMistakeInOneLine) {
  const auto reads = [](const std::string& front, const std::string& body) {
    return problem_of([&] { parse_lesson("99_x", lesson_text(front, body), ""); });
  };
  EXPECT_EQ(reads(good_front, good_body), "none");
  EXPECT_EQ(problem_of([] { parse_lesson("99_x", "# T\n", ""); }),
            "a lesson begins with a line of +++");
  EXPECT_EQ(reads(good_front, "# T\n\n## Question\n\nin 12 steps?\n\n## Reveal\n\n{a}\n"),
            "the figure '12' is typed: let it be a value and a placeholder");
  EXPECT_EQ(reads(good_front, "# T\n\n## Question\n\nq\n\n## Reveal\n\n{b}\n"),
            "there is no value 'b'");
  EXPECT_EQ(reads("holds = [\"a = a\"]\n" + good_front, good_body), "'a = a' does not say 'A < B'");
  EXPECT_EQ(reads(good_front, "# T\n\n## Answer\n\nq\n"),
            "a text needs '# TITLE', '## Question' and '## Reveal'");
  EXPECT_NE(reads("answr = \"a\"\n" + good_front, good_body).find("unknown key 'answr'"),
            std::string::npos);
}

TEST(LessonFormula, ComputesWithDimensions) {
  const Meaning meaning = [](std::string_view name, const std::vector<std::string>& with) {
    if (name == "n") return Amount{4, {}};
    if (name == "t" && with.size() == 2 && with[0] == "a=[1, 2]" && with[1] == "b=3")
      return Amount{2, {.seconds = 1}};
    throw InputError("unknown");
  };
  EXPECT_EQ(to_text(evaluate("2 * (n - 1) * (2us + 64MiB / n / (16MiB / 1s))", meaning)), "6 s");
  EXPECT_EQ(to_text(evaluate("t[a=[1, 2], b=3] / 4", meaning)), "500 ms");
  EXPECT_EQ(to_text(evaluate("max(log2(n), ceil(1.2), sqrt(n))", meaning)), "2");
  EXPECT_EQ(problem_of([&] { evaluate("2us + 3", meaning); }),
            "s and a plain number cannot be added");
  EXPECT_EQ(problem_of([&] { evaluate("2 +", meaning); }),
            "formula '2 +': a number or a name is missing");
  EXPECT_EQ(problem_of([&] { evaluate("(2", meaning); }), "formula '(2': ')' is missing");
  EXPECT_EQ(problem_of([&] { evaluate("2 / 0", meaning); }), "division by zero");
  EXPECT_EQ(problem_of([&] { evaluate(std::string(100, '('), meaning); }),
            "formula '" + std::string(100, '(') + "': too many brackets");
}

TEST(LessonAmount, IsReadAndWrittenAsPeopleDo) {
  EXPECT_EQ(to_text({0.0358, {.seconds = 1}}), "35.8 ms");
  EXPECT_EQ(to_text({0.2956, {}}, "%"), "29.6 %");
  EXPECT_EQ(to_text({12345.6, {}}), "12,346");
  EXPECT_EQ(to_text({1.5 * 1024 * 1024, {.bytes = 1}}), "1.5 MiB");
  EXPECT_DOUBLE_EQ(parse_guess("35", "ms").value, 0.035);
  EXPECT_DOUBLE_EQ(parse_guess(" 35 ms ", "ms").value, 0.035);
  EXPECT_DOUBLE_EQ(parse_guess("0.5s", "ms").value, 0.5);
  EXPECT_DOUBLE_EQ(parse_guess("12,000", "samples").value, 12000);
  for (const char* wrong : {"", "much", "3 GiB", "nan", "1e999", "3 ms ms"})
    EXPECT_NE(
        problem_of([&] { parse_guess(wrong, "ms"); }).find("is no guess: type a number of ms"),
        std::string::npos)
        << wrong;
}

TEST(LessonGrade, SaysHowFarOffAGuessIs) {
  const Lesson lesson = all_lessons()[16];  // the ring, whose answer is exact
  LessonSheet sheet(lesson);
  const double truth = sheet.answer().value;
  const auto words = [&](double factor) {
    return sheet.grade({truth * factor, {.seconds = 1}}).words;
  };
  EXPECT_TRUE(sheet.grade({truth * 1.05, {.seconds = 1}}).is_right);
  EXPECT_FALSE(sheet.grade({truth * 1.5, {.seconds = 1}}).is_right);
  EXPECT_NE(words(1).find("on the spot"), std::string::npos);
  EXPECT_NE(words(1.5).find("50 % too high"), std::string::npos);
  EXPECT_NE(words(0.8).find("20 % too low"), std::string::npos);
  EXPECT_NE(words(0.25).find("4.0 times too low"), std::string::npos);
  EXPECT_NE(words(-1).find("on the other side of zero"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::lessons_test
