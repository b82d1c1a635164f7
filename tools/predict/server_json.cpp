// The forms for scripts of a run with parameter servers.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/version.hpp"
#include "tools/predict/server_summary.hpp"

namespace rehearse {

namespace {

using Json = nlohmann::ordered_json;

Json spread_json(const Spread& spread) {
  return {{"mean", spread.mean}, {"min", spread.least}, {"p50", spread.p50},
          {"p90", spread.p90},   {"max", spread.most},  {"count", spread.count}};
}

Json server_roles_json(const Prediction& told) {
  Json roles = Json::array();
  for (const RoleReport& role : told.roles)
    roles.push_back({{"name", role.name},
                     {"ranks", role.ranks},
                     {"peak_memory_bytes", role.peak_bytes.count()},
                     {"capacity_bytes", role.capacity.count()}});
  return roles;
}

}  // namespace

std::string server_json(const ServerTold& told) {
  const Scenario& scenario = told.loaded.scenario;
  const ServerReport& report = told.answer.report;
  const Prediction& prediction = told.answer.prediction;
  const auto seconds = [](Time time) { return time.seconds().count(); };
  const Json json{
      {"title", scenario.title},
      {"question", scenario.question},
      {"model", told.loaded.workload.name},
      {"parameters", prediction.parameters},
      {"cluster", told.loaded.topology.name},
      {"ranks", prediction.world},
      {"workers", told.answer.plan.workers.size()},
      {"servers", told.answer.plan.servers.size()},
      {"steps_per_worker", told.answer.plan.how.steps},
      {"updates_per_s", report.updates_per_second},
      {"samples_per_s", report.samples_per_second},
      {"tokens_per_s", report.tokens_per_second},
      {"updates", report.gradients},
      {"versions", report.versions},
      {"step_time_s", spread_json(report.step)},
      {"staleness", spread_json(report.staleness)},
      {"staleness_histogram", report.stale},
      {"server_busy", report.busy},
      {"busiest_server", report.busiest},
      {"queue_length", report.queue_length},
      {"queue_wait_s", spread_json(report.wait)},
      {"worker_computes", report.computing},
      {"window_s", seconds(report.window)},
      {"makespan_s", seconds(report.makespan)},
      {"reference_makespan_s", told.reference ? Json(seconds(*told.reference)) : Json(nullptr)},
      {"mfu", prediction.mfu()},
      {"fits", prediction.fits},
      {"roles", server_roles_json(prediction)},
      {"training", told.cost ? Json{{"steps", told.cost->steps},
                                    {"days", told.cost->days},
                                    {"gpu_hours", told.cost->gpu_hours}}
                             : Json(nullptr)},
      {"simulation",
       {{"engine", told.engine},
        {"ops", prediction.simulation.ops},
        {"events", prediction.simulation.events},
        {"wall_s", told.wall}}},
      {"calibration", calibration_words(scenario)},
      {"scenario_hash", fingerprint(scenario)},
      {"version", version()}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string workers_csv(const ServerAnswer& answer) {
  std::string text = "worker,rank,steps,mean_step_ms,longest_step_ms,end_ms\n";
  for (std::size_t w = 0; w < answer.lowered.steps.size(); ++w) {
    Time before, longest;
    for (const ServerProgram::Step& step : answer.lowered.steps[w]) {
      const Time end = answer.timeline.spans[index(step.end)].end;
      longest = std::max(longest, end - before);
      before = end;
    }
    const auto steps = static_cast<double>(answer.lowered.steps[w].size());
    const double all = before.seconds().count() * 1e3;
    text += fmt::format("{},{},{},{},{},{}\n", w, index(answer.plan.workers[w]), steps, all / steps,
                        longest.seconds().count() * 1e3, all);
  }
  return text;
}

}  // namespace rehearse
