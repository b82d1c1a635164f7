// Pictures are those of `predict` and `bench`: the pipeline as it runs, and bars along an axis.
#include "tools/teach/teach_show.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/shaped_roofline.hpp"
#include "strategies/predict/predictor.hpp"
#include "tools/output/chart.hpp"
#include "tools/predict/step_picture.hpp"

namespace rehearse {

namespace {

std::string blocks_text(const std::vector<LessonBlock>& blocks, LessonSheet& sheet) {
  std::string text;
  for (const LessonBlock& block : blocks) {
    const std::string filled = sheet.filled(block);
    if (!block.is_formula) {
      text += wrapped(filled, lesson_columns) + "\n";
      continue;
    }
    std::size_t at = 0;
    while (at <= filled.size()) {
      const std::size_t end = std::min(filled.find('\n', at), filled.size());
      text += "    " + filled.substr(at, end - at) + "\n";
      at = end + 1;
    }
    text += "\n";
  }
  return text;
}

std::string pipeline_text(LessonSheet& sheet) {
  const LoadedScenario& loaded = sheet.runs().run().loaded;
  const ShapedRoofline cost;
  StepPredictor predictor(loaded.topology, cost);
  const StepPredictor::Answer answer =
      predictor.predict(loaded.scenario, loaded.workload, {.grain = Grain::blocks});
  return pipeline_picture(answer.step, answer.timeline, lesson_columns) + "\n";
}

std::string curve_text(const Lesson& lesson, LessonSheet& sheet) {
  const std::vector<LessonPoint> points = sheet.curve();
  if (points.empty()) return {};
  double most = 0;
  std::size_t widest = 0;
  for (const LessonPoint& point : points) {
    if (point.amount) most = std::max(most, point.amount->value);
    widest = std::max(widest, column_count(point.at));
  }
  std::string text;
  const std::string name = curve_axis(lesson.curve).name;
  for (const LessonPoint& point : points) {
    const std::string told = !point.amount ? "does not come out even"
                             : lesson.curve.unit.empty()
                                 ? to_text(*point.amount)
                                 : to_text(*point.amount, lesson.curve.unit);
    const double part = point.amount && most > 0 ? point.amount->value / most : 0;
    text += fmt::format("{} = {} │{} {}\n", name, padded(point.at, widest), bar(part, 36), told);
  }
  return text + "\n";
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string out;
  std::size_t at = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t width = column_count(word);
    if (at > 0 && at + 1 + width > columns) {
      out += "\n";
      at = 0;
    }
    if (at > 0) out += " ";
    out += word;
    at += width + (at > 0);
  }
  return out + "\n";
}

std::string lesson_opening(const Lesson& lesson, LessonSheet& sheet) {
  return fmt::format("Lesson {}: {}\n\n", lesson.number(), lesson.title) +
         blocks_text(lesson.idea, sheet) + blocks_text(lesson.question, sheet);
}

std::string lesson_reveal(const Lesson& lesson, LessonSheet& sheet) {
  std::string text;
  if (lesson.draws_pipeline) text += pipeline_text(sheet);
  text += curve_text(lesson, sheet);
  return text + blocks_text(lesson.reveal, sheet);
}

}  // namespace rehearse
