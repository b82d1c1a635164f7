// Each question is a function from JSON to JSON; the table at the end names them.
#include "tools/lab/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "sim/scenario/scenario_setting.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "strategies/predict/server_run.hpp"
#include "tools/cli/version.hpp"
#include "tools/lab/bars.hpp"
#include "tools/report/pipeline_figure.hpp"
#include "tools/report/timeline_figure.hpp"
#include "tools/sweep/sweep_axes.hpp"
#include "tools/teach/teach_sheet.hpp"

namespace rehearse {

namespace {

using Json = nlohmann::ordered_json;

const std::vector<Lesson>& lessons() {
  static const std::vector<Lesson> all = all_lessons();
  return all;
}

/// What is remembered from one question to the next.
Predictors& predictors() {
  static Predictors all;
  return all;
}

std::string text_of(const Json& request, const char* key) {
  const auto found = request.find(key);
  if (found == request.end() || !found->is_string())
    throw InputError(fmt::format("the question has no '{}'", key));
  return *found;
}

std::vector<std::string> sets_of(const Json& request) {
  std::vector<std::string> sets;
  const auto found = request.find("set");
  if (found == request.end() || !found->is_array()) return sets;
  for (const Json& one : *found)
    if (one.is_string()) sets.push_back(one);
  return sets;
}

const Lesson& lesson_of(const Json& request) {
  const std::string name = text_of(request, "name");
  for (const Lesson& lesson : lessons())
    if (lesson.name == name) return lesson;
  throw InputError(fmt::format("there is no lesson '{}'", name));
}

FigureSize size_of(const Json& request) {
  FigureSize size{.has_data = false};
  const auto found = request.find("width");
  if (found != request.end() && found->is_number())
    size.width = std::clamp(found->get<double>(), 300.0, 2000.0);
  return size;
}

Json blocks_json(const std::vector<LessonBlock>& blocks, LessonSheet& sheet) {
  Json list = Json::array();
  for (const LessonBlock& block : blocks)
    list.push_back({{"formula", block.is_formula}, {"text", sheet.filled(block)}});
  return list;
}

Json figure_json(const Figure& figure) {
  return {{"name", figure.name},
          {"title", figure.title},
          {"description", figure.description},
          {"svg", figure.svg}};
}

Json figures_json(const Prediction& told) {
  Json list = Json::array();
  const auto add = [&](const char* name, std::string text) {
    list.push_back({{"name", name}, {"text", std::move(text)}});
  };
  Time exposed;
  Bytes peak;
  for (const Time time : told.mean.exposed) exposed += time;
  for (const RoleReport& role : told.roles) peak = std::max(peak, role.peak_bytes);
  const double part = exposed.seconds().count() / told.step.seconds().count();
  add("step", to_text({told.step.seconds().count(), {.seconds = 1}}));
  add("samples a second", to_text({told.samples_per_second(), {}}));
  add("bubble", fmt::format("{:.1f} %", told.bubble_fraction() * 100));
  add("exposed communication", fmt::format("{:.1f} %", part * 100));
  add("MFU", fmt::format("{:.1f} %", told.mfu() * 100));
  add("memory",
      fmt::format("{} of {}{}", to_text({static_cast<double>(peak.count()), {.bytes = 1}}),
                  to_text({static_cast<double>(told.roles.front().capacity.count()), {.bytes = 1}}),
                  told.fits ? "" : ", does not fit"));
  return list;
}

/// Loads and predicts, and draws what was simulated.
Json picture_json(const LoadedScenario& read, const FigureSize& size) {
  const LoadedScenario loaded = ready(read);
  Json answer{{"title", read.scenario.title}, {"toml", to_toml(read.scenario)}};
  if (loaded.scenario.parameter_server.servers > 0) {
    const ShapedRoofline cost;
    const ServerAnswer run =
        predict_servers(loaded.scenario, loaded.workload, loaded.topology, cost, true);
    answer["step_ps"] = std::to_string(run.report.makespan.ps());  // until all workers are done
    answer["figures"] = figures_json(run.prediction);
    answer["picture"] = figure_json(timeline_figure(run.lowered.program, run.timeline, size));
    return answer;
  }
  StepPredictor& predictor = predictors().on(loaded.topology);
  // Blocks take the same time as their kernels, and are fewer: the picture follows the slider.
  const StepPredictor::Answer run =
      predictor.predict(loaded.scenario, loaded.workload, {.grain = Grain::blocks});
  answer["step_ps"] = std::to_string(run.prediction.step.ps());
  answer["figures"] = figures_json(run.prediction);
  answer["picture"] =
      figure_json(run.prediction.pipeline > 1 ? pipeline_figure(run.step, run.timeline, size)
                                              : timeline_figure(run.step, run.timeline, size));
  return answer;
}

/// Whether the setting leaves the scenario as it is.
bool is_at(const Setting& setting, const Scenario& scenario) {
  Scenario changed = scenario;
  apply(setting, changed);
  return changed == scenario;
}

/// The value a control's key has in the scenario, where it is one of the control's; else the first.
std::string now_of(const Axis& axis, const Scenario& scenario) {
  for (std::size_t v = 0; v < axis.values.size(); ++v)
    if (is_at(axis.settings[v], scenario)) return axis.values[v];
  return axis.values.front();
}

Json controls_json(const Lesson& lesson) {
  const LoadedScenario loaded = parse_scenario(lesson.scenario, lesson.scenario_file);
  Json list = Json::array();
  for (const std::string& text : lesson.controls) {
    const Axis axis = parse_sweep_axis(text);
    const ScenarioKey* const key = axis.settings.front().key;
    list.push_back({{"key", axis.name},
                    {"values", axis.values},
                    {"now", now_of(axis, loaded.scenario)},
                    {"help", key == nullptr ? std::string{} : std::string{key->help}}});
  }
  return list;
}

// What the page draws a point at a time; whether its axis is a key tells which points a control's
// change leaves as they are.
Json axis_json(const Lesson& lesson) {
  if (lesson.curve.axis.empty()) return nullptr;
  CurveAxis axis = curve_axis(lesson.curve);
  return {{"name", std::move(axis.name)},
          {"values", std::move(axis.values)},
          {"is_key", lesson.curve.of.find('@') == std::string::npos}};
}

Json answer_lessons(const Json&) {
  Json list = Json::array();
  for (const Lesson& lesson : lessons())
    list.push_back({{"name", lesson.name},
                    {"number", lesson.number()},
                    {"title", lesson.title},
                    {"topic", lesson.topic}});
  return {{"lessons", std::move(list)}, {"version", version()}};
}

Json answer_lesson(const Json& request) {
  const Lesson& lesson = lesson_of(request);
  LessonSheet sheet(lesson, {}, &predictors());
  return {{"name", lesson.name},
          {"number", lesson.number()},
          {"title", lesson.title},
          {"topic", lesson.topic},
          {"unit", lesson.unit},
          {"idea", blocks_json(lesson.idea, sheet)},
          {"question", blocks_json(lesson.question, sheet)},
          {"controls", controls_json(lesson)},
          {"axis", axis_json(lesson)},
          {"toml", lesson.scenario}};
}

Json answer_picture(const Json& request) {
  const Lesson& lesson = lesson_of(request);
  return picture_json(parse_scenario(lesson.scenario, lesson.scenario_file, sets_of(request)),
                      size_of(request));
}

Json answer_point(const Json& request) {
  const Lesson& lesson = lesson_of(request);
  if (lesson.curve.axis.empty()) throw InputError("this lesson has no curve");
  LessonSheet sheet(lesson, sets_of(request), &predictors());
  const LessonPoint point = sheet.point(text_of(request, "at"));
  if (!point.amount) return {{"value", nullptr}, {"words", "does not come out even"}};
  return {{"value", point.amount->value},
          {"words", lesson.curve.unit.empty() ? to_text(*point.amount)
                                              : to_text(*point.amount, lesson.curve.unit)}};
}

/// Where the scenario stands on the axis of its curve; empty: nowhere.
std::string now_on(const Lesson& lesson, const std::vector<std::string>& sets) {
  if (lesson.curve.of.find('@') != std::string::npos) return "";
  const LoadedScenario loaded = parse_scenario(lesson.scenario, lesson.scenario_file, sets);
  const Axis axis = parse_sweep_axis(lesson.curve.axis);
  for (std::size_t v = 0; v < axis.values.size(); ++v)
    if (is_at(axis.settings[v], loaded.scenario)) return axis.values[v];
  return "";
}

Json answer_curve(const Json& request) {
  const Lesson& lesson = lesson_of(request);
  if (lesson.curve.axis.empty()) return {{"curve", nullptr}};
  const CurveAxis axis = curve_axis(lesson.curve);
  const std::string now = now_on(lesson, sets_of(request));
  const auto told = request.find("points");
  std::vector<LabBar> bars;
  std::vector<double> values;
  for (std::size_t v = 0; v < axis.values.size(); ++v) {
    LabBar bar{.label = axis.values[v], .words = "…", .is_now = axis.values[v] == now};
    values.push_back(0);
    if (told != request.end() && told->is_array() && v < told->size() && (*told)[v].is_object()) {
      const Json& point = (*told)[v];
      bar.words = text_of(point, "words");
      if (point.contains("value") && point["value"].is_number()) values.back() = point["value"];
    }
    bars.push_back(std::move(bar));
  }
  const double most = *std::max_element(values.begin(), values.end());
  for (std::size_t v = 0; v < bars.size(); ++v) bars[v].part = most > 0 ? values[v] / most : 0;
  return {{"curve", figure_json(bars_figure(fmt::format("{} by {}", lesson.topic, axis.name), bars,
                                            size_of(request)))}};
}

Json answer_reveal(const Json& request) {
  const Lesson& lesson = lesson_of(request);
  LessonSheet sheet(lesson, sets_of(request), &predictors());
  const std::string guess = request.contains("guess") ? text_of(request, "guess") : "";
  Json answer{{"answer", to_text(sheet.answer(), lesson.unit)}, {"grade", nullptr}};
  if (!guess.empty()) {
    const Grade grade = sheet.grade(parse_guess(guess, lesson.unit));
    answer["grade"] = {{"right", grade.is_right}, {"words", grade.words}};
  }
  answer["text"] = blocks_json(lesson.reveal, sheet);
  return answer;
}

Json answer_guess(const Json& request) {
  const Lesson& lesson = lesson_of(request);
  return {{"guess", to_text(parse_guess(text_of(request, "guess"), lesson.unit), lesson.unit)}};
}

Json answer_run(const Json& request) {
  return picture_json(parse_scenario(text_of(request, "toml"), "scenario.toml"), size_of(request));
}

struct Question {
  std::string_view ask;
  Json (*answer)(const Json& request);
};
constexpr Question questions[] = {
    {"lessons", answer_lessons}, {"lesson", answer_lesson}, {"picture", answer_picture},
    {"reveal", answer_reveal},   {"guess", answer_guess},   {"run", answer_run},
    {"point", answer_point},     {"curve", answer_curve},
};

Json answered(std::string_view request) {
  const Json asked = Json::parse(request, nullptr, false);
  if (!asked.is_object()) throw InputError("the question is no JSON");
  const std::string ask = text_of(asked, "ask");
  for (const Question& question : questions)
    if (question.ask == ask) return question.answer(asked);
  throw InputError(fmt::format("unknown question '{}'", ask));
}

Json errors_json(const InputError& error) {
  Json list = Json::array();
  for (const Problem& problem : error.problems())
    list.push_back({{"text", to_string(problem)},
                    {"line", problem.place.line},
                    {"column", problem.place.column}});
  return {{"errors", std::move(list)}};
}

}  // namespace

std::string lab_answer(std::string_view request) {
  Json answer;
  try {
    answer = answered(request);
  } catch (const InputError& error) {
    answer = errors_json(error);
  } catch (const std::bad_alloc&) {
    answer = {{"errors", {{{"text", "error: out of memory: ask for fewer ranks"}}}}};
  } catch (const std::exception& error) {
    answer = {{"errors", {{{"text", fmt::format("error: {}", error.what())}}}}};
  }
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace rehearse
