// A lesson with its figures: values evaluated, placeholders filled, a guess judged, the answer
// along an axis. Changes of the scenario (the lab's controls) go through all of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/teach/teach_lesson.hpp"
#include "tools/teach/teach_runs.hpp"

namespace rehearse {

struct Grade {
  bool is_right = false;
  std::string words;  // one sentence: what was said, what is, how far off
};

struct LessonPoint {
  std::string at;                // the axis' value, as written
  std::optional<Amount> amount;  // none: this point does not come out even
};

struct CurveAxis {
  std::string name;
  std::vector<std::string> values;
};
/// Of a key of the scenario, as `sweep` has it; or, where the formula has an `@` for its values, of
/// anything: "size=1KiB,1MiB". Throws InputError.
CurveAxis curve_axis(const LessonCurve& curve);

class LessonSheet {
 public:
  /// The lesson must outlive it, and so must predictors that are lent.
  explicit LessonSheet(const Lesson& lesson, std::vector<std::string> sets = {},
                       Predictors* lent = nullptr);

  Amount value(std::string_view name);
  Amount answer() { return value(lesson_.answer); }
  /// Of any formula over the lesson's values and measured quantities.
  Amount of(std::string_view formula);
  /// Whether one of the lesson's claims, "A < B", is true.
  bool holds(std::string_view claim);
  /// The text with its placeholders filled: {step}, {bubble in %}.
  std::string filled(const LessonBlock& block);
  Grade grade(Amount guess);
  /// Throws InputError when the axis cannot be read.
  std::vector<LessonPoint> curve();
  /// One of them.
  LessonPoint point(const std::string& at);
  LessonRuns& runs() { return runs_; }

 private:
  Amount at_point(const std::string& at);
  Amount meaning(std::string_view name, const std::vector<std::string>& with);

  const Lesson& lesson_;
  std::vector<std::string> sets_;
  Predictors* lent_;
  LessonRuns runs_;
  std::map<std::string, Amount, std::less<>> known_;
  std::size_t depth_ = 0;
};

}  // namespace rehearse
