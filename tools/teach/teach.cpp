// `rehearse teach [LESSON]`: a question, the learner's guess, the run, and the reveal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "sim/base/error.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/teach/teach_progress.hpp"
#include "tools/teach/teach_show.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string lesson;
  std::optional<std::string> answer;
  std::vector<std::string> sets;
  bool list = false;
};

bool is_asked_for(const Lesson& lesson, std::string_view word) {
  if (word.size() == 1) return lesson.number() == "0" + std::string{word};
  return lesson.name == word || lesson.number() == word ||
         std::string_view{lesson.name}.substr(3) == word;
}

const Lesson& chosen(const std::vector<Lesson>& lessons, const std::string& word) {
  std::vector<std::string> names;
  for (const Lesson& lesson : lessons) {
    if (is_asked_for(lesson, word)) return lesson;
    names.push_back(lesson.name.substr(3));
  }
  const std::string hint = did_you_mean(word, names);
  throw InputError(fmt::format("there is no lesson '{}'{}", word,
                               hint.empty() ? "; see 'rehearse teach --list'" : hint));
}

/// The first that is not done yet; after the last one, none.
const Lesson* next_of(const std::vector<Lesson>& lessons, const LessonProgress& progress) {
  for (const Lesson& lesson : lessons)
    if (progress.find(lesson.name) == nullptr) return &lesson;
  return nullptr;
}

std::string list_text(const std::vector<Lesson>& lessons, const LessonProgress& progress) {
  std::string text;
  std::size_t right = 0;
  for (const Lesson& lesson : lessons) {
    const LessonDone* const done = progress.find(lesson.name);
    right += done != nullptr && done->is_right;
    text += fmt::format("{} {}  {}\n",
                        done == nullptr  ? "·"
                        : done->is_right ? "✓"
                                         : "○",
                        lesson.number(), lesson.title);
  }
  return text +
         fmt::format("\n{} of {} done, {} guessed right; 'rehearse teach 05' is lesson 05.\n",
                     progress.size(), lessons.size(), right);
}

/// A line of standard input; nothing at its end.
std::optional<std::string> read_line() {
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

/// Nothing: the learner does not want to guess. On a terminal a mistake is asked again.
std::optional<Amount> ask(const Lesson& lesson) {
  const bool is_terminal = ::isatty(STDIN_FILENO) != 0;
  const std::string in = lesson.unit.empty() ? "" : fmt::format(" in {}", lesson.unit);
  for (int tries = 0; tries < 3; ++tries) {
    fmt::print("Your guess{} (Enter: show me): ", in);
    std::fflush(stdout);
    const std::optional<std::string> line = read_line();
    if (!is_terminal) fmt::print("{}\n", line.value_or(""));
    if (!line || line->find_first_not_of(" \t\r") == std::string::npos) return std::nullopt;
    try {
      return parse_guess(*line, lesson.unit);
    } catch (const InputError& error) {
      if (!is_terminal) throw;
      fmt::print("{}\n", error.problems().front().message);
    }
  }
  return std::nullopt;
}

void remember(LessonProgress& progress, const Lesson& lesson, LessonDone done) {
  try {
    progress.remember(lesson.name, std::move(done));
  } catch (const DeviceError& error) {
    fmt::print(stderr, "note: this lesson is not remembered: {}\n", error.what());
  }
}

void show(const Options& options, const std::vector<Lesson>& lessons, const Lesson& lesson,
          LessonProgress& progress) {
  LessonSheet sheet(lesson, options.sets);
  std::optional<Amount> guess;
  if (options.answer) guess = parse_guess(*options.answer, lesson.unit);
  const std::string opening = lesson_opening(lesson, sheet);
  fmt::print("{}", opening);
  if (!options.answer) guess = ask(lesson);
  // Simulated before anything of the answer is printed: a mistake is one line and nothing else.
  const std::string reveal = lesson_reveal(lesson, sheet);
  const std::string truth = to_text(sheet.answer(), lesson.unit);
  if (guess) {
    const Grade grade = sheet.grade(*guess);
    fmt::print("\n{} {}\n\n{}", grade.is_right ? "Right." : "Not quite.", grade.words, reveal);
    // What-if runs have other answers than the lesson.
    if (options.sets.empty())
      remember(progress, lesson, {to_text(*guess, lesson.unit), truth, grade.is_right});
  } else {
    fmt::print("\nThe run says {}.\n\n{}", truth, reveal);
    if (options.sets.empty() && progress.find(lesson.name) == nullptr)
      remember(progress, lesson, {"", truth, false});
  }
  const Lesson* const next = next_of(lessons, progress);
  if (next != nullptr)
    fmt::print("Next: rehearse teach {}  ({})\n", next->number(), next->title);
  else
    fmt::print("That was every lesson.\n");
}

void teach(const Options& options) {
  const std::vector<Lesson> lessons = all_lessons();
  LessonProgress progress(progress_file());
  if (options.list) {
    fmt::print("{}", list_text(lessons, progress));
    return;
  }
  if (!options.lesson.empty())
    return show(options, lessons, chosen(lessons, options.lesson), progress);
  const Lesson* const next = next_of(lessons, progress);
  if (next == nullptr)
    fmt::print("{}", list_text(lessons, progress));
  else
    show(options, lessons, *next, progress);
}

}  // namespace

void add_teach_command(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command = program.add("teach", "Lessons: a question, your guess, the run, and why");
  command.option("LESSON", &options->lesson,
                 "Its number or name; left out: the first that is not done");
  command.flag("--list", options->list, "All lessons, and which are done");
  command.option(
      "--answer", [options](const std::string& guess) { options->answer = guess; },
      "Your guess, instead of being asked: 35ms");
  command.option("--set", &options->sets, "Change a key of its scenario: what if?",
                 {.word_by_word = true});
  command.does([options] { teach(*options); });
}

}  // namespace rehearse
