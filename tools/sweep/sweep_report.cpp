// Tables of points: the best ones for people, all of them for scripts.
#include "tools/sweep/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/version.hpp"
#include "tools/output/chart.hpp"
#include "tools/predict/predict_report.hpp"

namespace rehearse {

namespace {

using Json = nlohmann::ordered_json;
using Status = SweepPoint::Status;

std::size_t count(const std::vector<SweepPoint>& points, Status status) {
  return static_cast<std::size_t>(std::count_if(
      points.begin(), points.end(), [&](const SweepPoint& p) { return p.status == status; }));
}

// Reasons that differ in their numbers only are one reason; the first stands for them.
struct Reason {
  std::string example;
  std::size_t points = 0;
};
std::vector<Reason> reasons(const std::vector<SweepPoint>& points) {
  std::map<std::string, std::size_t> found;
  std::vector<Reason> list;
  for (const SweepPoint& point : points) {
    if (point.status != Status::uneven) continue;
    std::string shape;
    for (const char c : point.reason)
      if (const bool digit = c >= '0' && c <= '9'; !digit || shape.empty() || shape.back() != '#')
        shape += digit ? '#' : c;
    const auto [slot, is_new] = found.try_emplace(shape, list.size());
    if (is_new) list.push_back({point.reason, 0});
    ++list[slot->second].points;
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Reason& a, const Reason& b) { return a.points > b.points; });
  return list;
}

std::vector<std::size_t> ranking(const std::vector<SweepPoint>& points) {
  std::vector<std::size_t> order;
  for (std::size_t p = 0; p < points.size(); ++p)
    if (points[p].status == Status::predicted) order.push_back(p);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (points[a].fits != points[b].fits) return points[a].fits;
    return points[a].samples_per_second > points[b].samples_per_second;
  });
  return order;
}

class PointTable {
 public:
  explicit PointTable(const SweepReport& report)
      : report_{report}, has_tokens_{tokens(report.points)} {
    for (const Axis& axis : report.axes) {
      std::size_t width = column_count(axis.name);
      for (const std::string& value : axis.values) width = std::max(width, column_count(value));
      widths_.push_back(width);
    }
  }

  std::string text(std::span<const std::size_t> order, std::size_t best) const {
    std::string out = " ";
    for (std::size_t a = 0; a < report_.axes.size(); ++a)
      out += " " + padded(report_.axes[a].name, widths_[a]);
    out += fmt::format(" {:>14} {:>14} {:>12} {:>7} {:>10} {:>7} {:>8}\n", "step (ms)",
                       has_tokens_ ? "tokens/s" : "samples/s", "TFLOP/s/GPU", "MFU", "memory",
                       "bubble", "exposed");
    for (const std::size_t p : order) out += row(p, p == best);
    return out;
  }

 private:
  static bool tokens(const std::vector<SweepPoint>& points) {
    return std::any_of(points.begin(), points.end(),
                       [](const SweepPoint& point) { return point.tokens_per_second > 0; });
  }

  std::string row(std::size_t p, bool best) const {
    const SweepPoint& point = report_.points[p];
    const std::vector<std::size_t> at = coordinates_of(report_.axes, p);
    std::string out = best ? "▶" : " ";
    for (std::size_t a = 0; a < report_.axes.size(); ++a)
      out += " " + padded(report_.axes[a].values[at[a]], widths_[a]);
    Time exposed;
    for (const Time time : point.mean.exposed) exposed += time;
    const double step = point.step.seconds().count();
    out += fmt::format(
        " {:>14} {:>14} {:>12.1f} {:>5.1f} % {:>6.1f} GiB {:>5.1f} % {:>6.1f} %{}\n",
        grouped(step * 1e3, 3),
        has_tokens_ ? grouped(point.tokens_per_second, 0) : grouped(point.samples_per_second, 2),
        point.tflops_per_gpu, 100 * point.mfu, gibibytes(point.peak), 100 * point.bubble_fraction,
        100 * exposed.seconds().count() / step, point.fits ? "" : "  does not fit");
    return out;
  }

  const SweepReport& report_;
  bool has_tokens_;
  std::vector<std::size_t> widths_;
};

std::string counts(const SweepReport& report) {
  const std::size_t predicted = count(report.points, Status::predicted);
  const std::size_t uneven = count(report.points, Status::uneven);
  const std::size_t left = count(report.points, Status::not_run);
  const auto fit =
      static_cast<std::size_t>(std::count_if(report.points.begin(), report.points.end(),
                                             [](const SweepPoint& point) { return point.fits; }));
  std::string text = fmt::format("{}: {} predicted, of which {} fit",
                                 counted_noun(report.points.size(), "point"), predicted, fit);
  if (left > 0) text += fmt::format("; {} not run", left);
  if (uneven > 0) text += fmt::format("; {} do not come out even:", uneven);
  text += "\n";
  constexpr std::size_t most = 6;
  const std::vector<Reason> list = reasons(report.points);
  for (std::size_t r = 0; r < std::min(most, list.size()); ++r)
    text += fmt::format("  {:>6}  {}{}\n", list[r].points, list[r].points > 1 ? "such as: " : "",
                        list[r].example);
  if (list.size() > most) text += fmt::format("  … {} more reasons\n", list.size() - most);
  return text;
}

// "a,b" needs quotes; a quote in it is doubled.
std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string_view status_word(Status status) {
  constexpr std::string_view words[] = {"not_run", "uneven", "predicted"};
  return words[static_cast<std::size_t>(status)];
}

}  // namespace

std::size_t SweepReport::best() const {
  const std::vector<std::size_t> order = ranking(points);
  return order.empty() || !points[order.front()].fits ? points.size() : order.front();
}

std::string sweep_text(const SweepReport& report) {
  std::string text;
  if (!report.loaded.scenario.title.empty()) text += report.loaded.scenario.title + "\n";
  text += counts(report);
  std::vector<std::size_t> order = ranking(report.points);
  const std::size_t predicted = order.size();
  order.resize(std::min(order.size(), report.top));
  if (!order.empty()) {
    text += fmt::format("\nthe best {} of {}{}:\n", order.size(), predicted,
                        report.best() == report.points.size() ? "; none fits" : "");
    text += PointTable(report).text(order, report.best());
  }
  constexpr std::size_t most_curves = 6;
  const std::vector<ScalingCurve> curves = scaling_curves(report.axes, report.points);
  for (std::size_t c = 0; c < std::min(most_curves, curves.size()); ++c)
    text += "\n" + draw(curves[c]);
  if (curves.size() > most_curves)
    text += fmt::format("\n{} more curves are in --json\n", curves.size() - most_curves);
  return text + fmt::format("\nscenario {}, rehearse {}, calibration: {}\n",
                            fingerprint(report.loaded.scenario), version(),
                            calibration_words(report.loaded.scenario));
}

std::string sweep_csv(const SweepReport& report) {
  std::string text;
  for (const Axis& axis : report.axes) text += csv_text(axis.name) + ",";
  text +=
      "status,best,fits,ranks,tp,pp,cp,ep,dp,microbatches,samples,step_time_ps,step_time_ms,"
      "samples_per_s,tokens_per_s,model_tflops_per_gpu,mfu,bubble_fraction,compute_ms";
  for (std::size_t d = 0; d < dimension_count; ++d)
    text += fmt::format(",exposed_{}_ms", to_string(static_cast<Dimension>(d)));
  text += ",peak_memory_bytes,capacity_bytes,reason\n";
  const std::size_t best = report.best();
  for (std::size_t p = 0; p < report.points.size(); ++p) {
    const SweepPoint& point = report.points[p];
    const std::vector<std::size_t> at = coordinates_of(report.axes, p);
    for (std::size_t a = 0; a < at.size(); ++a)
      text += csv_text(report.axes[a].values[at[a]]) + ",";
    text += status_word(point.status);
    if (point.status != Status::predicted) {
      text += fmt::format("{:,>{}}{}\n", "", 21 + dimension_count, csv_text(point.reason));
      continue;
    }
    const auto ms = [](Time time) { return time.seconds().count() * 1e3; };
    text +=
        fmt::format(",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", p == best ? 1 : 0,
                    point.fits ? 1 : 0, point.world, point.tensor, point.pipeline, point.context,
                    point.expert, point.data, point.microbatches, point.samples, point.step.ps(),
                    ms(point.step), point.samples_per_second, point.tokens_per_second,
                    point.tflops_per_gpu, point.mfu, point.bubble_fraction, ms(point.mean.compute));
    for (const Time time : point.mean.exposed) text += fmt::format(",{}", ms(time));
    text += fmt::format(",{},{},\n", point.peak.count(), point.capacity.count());
  }
  return text;
}

std::string sweep_json(const SweepReport& report) {
  Json points = Json::array();
  for (std::size_t p = 0; p < report.points.size(); ++p) {
    const SweepPoint& point = report.points[p];
    Json set = Json::object();
    const std::vector<std::size_t> at = coordinates_of(report.axes, p);
    for (std::size_t a = 0; a < at.size(); ++a)
      set[report.axes[a].name] = report.axes[a].values[at[a]];
    Json row{{"set", std::move(set)}, {"status", status_word(point.status)}};
    if (point.status == Status::uneven) row["reason"] = point.reason;
    if (point.status == Status::predicted)
      row.update(Json{{"step_time_s", point.step.seconds().count()},
                      {"step_time_ps", point.step.ps()},
                      {"ranks", point.world},
                      {"samples_per_s", point.samples_per_second},
                      {"tokens_per_s", point.tokens_per_second},
                      {"model_tflops_per_gpu", point.tflops_per_gpu},
                      {"mfu", point.mfu},
                      {"bubble_fraction", point.bubble_fraction},
                      {"peak_memory_bytes", point.peak.count()},
                      {"fits", point.fits}});
    points.push_back(std::move(row));
  }
  Json uneven = Json::array();
  for (const Reason& reason : reasons(report.points))
    uneven.push_back({{"points", reason.points}, {"reason", reason.example}});
  Json curves = Json::array();
  for (const ScalingCurve& curve : scaling_curves(report.axes, report.points)) {
    Json samples = Json::array();
    for (const ScalingCurve::Sample& sample : curve.samples)
      samples.push_back({{"ranks", sample.ranks},
                         {"samples", sample.samples},
                         {"step_time_s", sample.step.seconds().count()},
                         {"speedup", sample.speedup},
                         {"efficiency", sample.efficiency}});
    const bool fitted = curve.kind != ScalingKind::mixed;
    curves.push_back({{"kind", to_string(curve.kind)},
                      {"of", curve.title},
                      {"serial_fraction", fitted ? Json(curve.serial_fraction) : Json(nullptr)},
                      {"samples", std::move(samples)}});
  }
  const std::size_t best = report.best();
  const Json json{{"title", report.loaded.scenario.title},
                  {"scenario_hash", fingerprint(report.loaded.scenario)},
                  {"best", best < report.points.size() ? Json(best) : Json(nullptr)},
                  {"points", std::move(points)},
                  {"uneven", std::move(uneven)},
                  {"scaling", std::move(curves)},
                  {"calibration", calibration_words(report.loaded.scenario)},
                  {"version", version()}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace rehearse
