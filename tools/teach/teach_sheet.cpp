// Values are evaluated when they are asked for, and once.
#include "tools/teach/teach_sheet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "tools/output/chart.hpp"
#include "tools/sweep/sweep_axes.hpp"
#include "tools/teach/teach_formula.hpp"
#include "topology/files/fields.hpp"

namespace rehearse {

namespace {

// Only values that need no others of themselves come to an end.
constexpr std::size_t deepest = 32;

std::string times_too(double ratio) {
  const bool is_high = ratio > 1;
  const double off = is_high ? ratio : 1 / ratio;
  const std::string_view way = is_high ? "high" : "low";
  if (off < 1.005) return "on the spot";
  if (off < 2) return fmt::format("{:.0f} % too {}", std::abs(ratio - 1) * 100, way);
  return fmt::format("{} times too {}", grouped(off, off < 10 ? 1 : 0), way);
}

}  // namespace

LessonSheet::LessonSheet(const Lesson& lesson, std::vector<std::string> sets, Predictors* lent)
    : lesson_{lesson},
      sets_{std::move(sets)},
      lent_{lent},
      runs_{lesson.scenario, lesson.scenario_file, sets_, lent} {}

Amount LessonSheet::value(std::string_view name) {
  const auto known = known_.find(name);
  if (known != known_.end()) return known->second;
  for (const auto& [word, formula] : lesson_.values) {
    if (word != name) continue;
    if (++depth_ > deepest)
      throw InputError(lesson_.place, fmt::format("value '{}' is made of itself", name));
    const Amount amount = of(formula);
    --depth_;
    return known_.emplace(name, amount).first->second;
  }
  throw InputError(lesson_.place, fmt::format("there is no value '{}'", name));
}

Amount LessonSheet::of(std::string_view formula) {
  return at_place(lesson_.place, [&] {
    return evaluate(formula, [this](std::string_view what, const std::vector<std::string>& with) {
      return meaning(what, with);
    });
  });
}

bool LessonSheet::holds(std::string_view claim) {
  const std::size_t less = claim.find('<');
  const Amount left = of(claim.substr(0, less)), right = of(claim.substr(less + 1));
  if (!(left.dimensions == right.dimensions))
    throw InputError(lesson_.place, fmt::format("'{}' compares different things", claim));
  return left.value < right.value;
}

Amount LessonSheet::meaning(std::string_view name, const std::vector<std::string>& with) {
  const bool is_value =
      with.empty() && std::any_of(lesson_.values.begin(), lesson_.values.end(),
                                  [&](const auto& one) { return one.first == name; });
  return is_value ? value(name) : runs_.measure(name, with);
}

std::string LessonSheet::filled(const LessonBlock& block) {
  std::string text;
  const std::string& source = block.text;
  for (std::size_t at = 0; at < source.size();) {
    if (source[at] != '{') {
      text += source[at++];
      continue;
    }
    const std::size_t end = source.find('}', at);
    const std::string inside = source.substr(at + 1, end - at - 1);
    const std::size_t in = inside.find(" in ");
    text += at_place(block.place, [&] {
      return in == std::string::npos ? to_text(value(inside))
                                     : to_text(value(inside.substr(0, in)), inside.substr(in + 4));
    });
    at = end + 1;
  }
  return text;
}

Grade LessonSheet::grade(Amount guess) {
  const Amount truth = answer();
  const std::string said = to_text(guess, lesson_.unit), is = to_text(truth, lesson_.unit);
  const double ratio = guess.value / truth.value;
  const bool is_right = std::abs(ratio - 1) <= lesson_.within;
  const std::string far = ratio > 0 ? times_too(ratio) : "on the other side of zero";
  return {is_right, fmt::format("You said {}; the run says {}: {}.", said, is, far)};
}

std::vector<LessonPoint> LessonSheet::curve() {
  std::vector<LessonPoint> points;
  if (lesson_.curve.axis.empty()) return points;
  for (const std::string& at : curve_axis(lesson_.curve).values) points.push_back(point(at));
  return points;
}

LessonPoint LessonSheet::point(const std::string& at) {
  try {
    return {at, at_point(at)};
  } catch (const InputError&) {
    return {at, {}};  // a batch that does not divide has no point; the axis goes on
  }
}

Amount LessonSheet::at_point(const std::string& at) {
  std::string formula = lesson_.curve.of;
  std::vector<std::string> sets = sets_;
  if (formula.find('@') == std::string::npos)
    sets.push_back(curve_axis(lesson_.curve).name + "=" + at);
  for (std::size_t mark = formula.find('@'); mark != std::string::npos; mark = formula.find('@'))
    formula.replace(mark, 1, at);
  LessonSheet there(lesson_, std::move(sets), lent_);
  return evaluate(formula, [&](std::string_view what, const std::vector<std::string>& with) {
    return there.meaning(what, with);
  });
}

CurveAxis curve_axis(const LessonCurve& curve) {
  if (curve.of.find('@') == std::string::npos) {
    Axis axis = parse_sweep_axis(curve.axis);
    return {std::move(axis.name), std::move(axis.values)};
  }
  const std::size_t equals = std::min(curve.axis.find('='), curve.axis.size());
  CurveAxis axis{curve.axis.substr(0, equals), {}};
  for (std::size_t at = equals + 1; at < curve.axis.size();) {
    const std::size_t end = std::min(curve.axis.find(',', at), curve.axis.size());
    axis.values.push_back(curve.axis.substr(at, end - at));
    at = end + 1;
  }
  return axis;
}

}  // namespace rehearse
