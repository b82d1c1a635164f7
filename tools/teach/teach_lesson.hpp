// A lesson: a scenario that runs, and a text that asks about it. `scenarios/lessons/FORMAT.md` has
// the form of both files. No figure of the text is typed: each is a placeholder of a value, and
// each value a formula over quantities that the simulator measures when the lesson is shown.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"

namespace rehearse {

struct LessonBlock {
  bool is_formula = false;  // indented in the file; shown as it stands
  std::string text;
  Place place;
};

/// A picture of how the answer changes along an axis: "nodes=1..64*2".
struct LessonCurve {
  std::string axis, of, unit;
};

struct Lesson {
  std::string name;      // "13_gpipe": the files' name
  std::string scenario;  // the text of the .toml, and its name
  std::string scenario_file;
  std::string title, topic;
  std::vector<LessonBlock> idea, question, reveal;
  std::string answer, unit;        // a value, and what it is asked in
  double within = 0.1;             // a guess so near is right
  std::string closed;              // a value that a textbook's formula gives; empty: there is none
  double agrees = 0;               // so near the answer comes to it
  std::vector<std::string> holds;  // what the text says in words, as formulas: "best < small"
  bool draws_pipeline = false;
  LessonCurve curve;                                        // empty axis: none
  std::vector<std::string> controls;                        // of the lab, as axes: "mbs=1,2,4"
  std::vector<std::pair<std::string, std::string>> values;  // name and formula, in file order
  std::vector<std::pair<std::string, std::string>> says;   // "eight times": what that is of the run
  std::vector<std::pair<std::string, std::string>> plain;  // "two neighbours": why no run tells it
  Place place;

  std::string_view number() const { return std::string_view{name}.substr(0, 2); }
};

/// Throws InputError with every mistake.
Lesson parse_lesson(std::string name, std::string_view text, std::string_view scenario);

/// All lessons of this build, by number. They travel inside the binary.
std::vector<Lesson> all_lessons();

struct LessonFile {
  std::string_view name;  // "13_gpipe"
  std::string_view text;
};
// Defined in sources that CMake writes from the files.
std::span<const LessonFile> lesson_texts();
std::span<const LessonFile> lesson_scenarios();

}  // namespace rehearse
