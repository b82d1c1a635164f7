// The forms for scripts: JSON with every figure of the summary, CSV with a row for each role.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/version.hpp"
#include "tools/predict/local_summary.hpp"
#include "tools/predict/predict_report.hpp"

namespace rehearse {

namespace {

using Json = nlohmann::ordered_json;

double seconds(Time time) { return time.seconds().count(); }

Json by_dimension(const std::array<Time, dimension_count>& times) {
  Json object = Json::object();
  for (std::size_t d = 0; d < dimension_count; ++d)
    object[std::string{to_string(static_cast<Dimension>(d))}] = seconds(times[d]);
  return object;
}

Time total(const std::array<Time, dimension_count>& times) {
  Time sum;
  for (const Time time : times) sum += time;
  return sum;
}

Json roles_json(const Prediction& told) {
  Json roles = Json::array();
  for (const RoleReport& role : told.roles) {
    Json memory = Json::object();
    for (std::size_t k = 0; k < memory_kinds; ++k)
      memory[std::string{to_string(static_cast<MemoryKind>(k))}] = role.peak[k].count();
    roles.push_back({{"name", role.name},
                     {"rank", index(role.rank)},
                     {"ranks", role.ranks},
                     {"compute_s", seconds(role.time.compute)},
                     {"exposed_communication_s", seconds(total(role.time.exposed))},
                     {"exposed_communication_by_dimension_s", by_dimension(role.time.exposed)},
                     {"communication_by_dimension_s", by_dimension(role.communication)},
                     {"bubble_s", seconds(role.time.bubble)},
                     {"peak_memory_bytes", role.peak_bytes.count()},
                     {"memory_bytes", std::move(memory)},
                     {"capacity_bytes", role.capacity.count()}});
  }
  return roles;
}

Json verdict_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const Neighbour& neighbour : verdict.better)
    list.push_back({{"set", neighbour.change},
                    {"step_time_s", seconds(neighbour.step)},
                    {"samples_per_s", neighbour.samples_per_second},
                    {"peak_memory_bytes", neighbour.peak.count()},
                    {"fits", neighbour.fits}});
  return {{"text", fmt::format("{}", fmt::join(verdict.sentences, " "))},
          {"tried", verdict.tried},
          {"better", std::move(list)}};
}

Json cost_json(const std::optional<TrainingCost>& cost) {
  if (!cost) return nullptr;
  Json target;
  if (cost->target)
    target = {{"gradient_noise_scale", cost->target->noise_scale},
              {"data_efficiency", cost->target->data_efficiency},
              {"steps", cost->target->steps},
              {"days", cost->target->days}};
  return {{"steps", cost->steps},
          {"days", cost->days},
          {"work_flop", cost->law.work},
          {"kernel_efficiency", cost->law.kernel_efficiency},
          {"parallel_efficiency", cost->law.parallel_efficiency},
          {"time_to_target", std::move(target)},
          {"gpu_hours", cost->gpu_hours},
          {"price", cost->price ? Json(*cost->price) : Json(nullptr)},
          {"currency", cost->price ? Json(cost->currency) : Json(nullptr)}};
}

Json times_json(const std::optional<StepTimes>& times) {
  if (!times) return nullptr;
  return {{"seeds", times->steps.size()},
          {"mean_s", seconds(times->mean())},
          {"p50_s", seconds(times->quantile(0.5))},
          {"p90_s", seconds(times->quantile(0.9))},
          {"p99_s", seconds(times->quantile(0.99))},
          {"min_s", seconds(times->quantile(0))},
          {"max_s", seconds(times->quantile(1))}};
}

Json local_json(const PredictReport& report) {
  const Scenario& scenario = report.loaded.scenario;
  const LocalStepMeans means =
      local_step_means(scenario, report.answer.step, report.answer.timeline);
  const auto kind = [](const LocalStepMeans::Kind& steps) {
    return Json{{"steps", steps.steps}, {"mean_s", steps.mean}};
  };
  return {{"simulated_steps", simulated_steps(scenario)},
          {"synchronous", kind(means.synchronous)},
          {"local", kind(means.local)},
          {"averaging", kind(means.averaging)}};
}

Bytes highest_peak(const Prediction& told) {
  Bytes peak;
  for (const RoleReport& role : told.roles) peak = std::max(peak, role.peak_bytes);
  return peak;
}

Json layout_json(const Prediction& told, const Parallelism& parallel) {
  return {{"tensor", told.tensor},   {"pipeline", told.pipeline},
          {"context", told.context}, {"expert", told.expert},
          {"data", told.data},       {"virtual_pipeline", parallel.virtual_pipeline},
          {"order", parallel.order}, {"style", told.pipeline > 1 ? "MPMD" : "SPMD"}};
}

}  // namespace

std::string prediction_json(const PredictReport& report) {
  const Prediction& told = report.answer.prediction;
  const Scenario& scenario = report.loaded.scenario;
  Json parts = Json::object();
  for (const BreakdownPart& part : report.parts) parts[part.name] = part.time.count();
  Json json{
      {"title", scenario.title},
      {"question", scenario.question},
      {"model", report.loaded.workload.name},
      {"parameters", told.parameters},
      {"cluster", report.loaded.topology.name},
      {"ranks", told.world},
      {"parallelism", layout_json(told, scenario.parallelism)},
      {"micro_batch_size", scenario.training.micro_batch_size},
      {"global_batch_size", told.samples},
      {"microbatches", told.microbatches},
      {"step_time_s", seconds(told.step)},
      {"step_time_ps", told.step.ps()},
      {"step_time_low_s", seconds(told.low())},
      {"step_time_high_s", seconds(told.high())},
      {"samples_per_s", told.samples_per_second()},
      {"tokens_per_s", told.tokens_per_second()},
      {"model_tflops_per_gpu", told.model_flops_per_gpu().count() * 1e-12},
      {"peak_tflops_per_gpu", told.peak.count() * 1e-12},
      {"mfu", told.mfu()},
      {"bubble_fraction", told.bubble_fraction()},
      {"exposed_communication_s", seconds(total(told.mean.exposed))},
      {"exposed_communication_by_dimension_s", by_dimension(told.mean.exposed)},
      {"compute_s", seconds(told.mean.compute)},
      {"peak_memory_bytes", highest_peak(told).count()},
      {"capacity_bytes", told.roles.front().capacity.count()},
      {"fits", told.fits},
      {"roles", roles_json(told)},
      {"breakdown", std::move(parts)},
      {"verdict", verdict_json(report.verdict)},
      {"training", cost_json(report.cost)},
      {"seed",
       report.answer.prediction.is_drawn ? Json(scenario.imperfection.seed) : Json(nullptr)},
      {"step_time_distribution", times_json(report.times)},
      {"average_step_time_s", report.average ? Json(seconds(report.average->step)) : Json(nullptr)},
      {"reference_step_time_s",
       report.reference ? Json(seconds(report.reference->step)) : Json(nullptr)},
      {"simulation",
       {{"engine", report.engine},
        {"ops", told.simulation.ops},
        {"events", told.simulation.events},
        {"wall_s", report.wall},
        {"peak_memory_bytes", report.peak_memory}}},
      {"calibration", calibration_words(scenario)},
      {"scenario_hash", fingerprint(scenario)},
      {"version", version()}};
  if (scenario.local_sgd.interval > 0) json["local_sgd"] = local_json(report);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string roles_csv(const PredictReport& report) {
  std::string text = "role,rank,ranks,step_ms,compute_ms,bubble_ms";
  for (std::size_t d = 0; d < dimension_count; ++d)
    text += fmt::format(",exposed_{}_ms", to_string(static_cast<Dimension>(d)));
  for (std::size_t k = 0; k < memory_kinds; ++k)
    text += fmt::format(",{}_bytes", to_string(static_cast<MemoryKind>(k)));
  text += ",peak_memory_bytes,capacity_bytes\n";
  const Prediction& told = report.answer.prediction;
  const auto ms = [](Time time) { return seconds(time) * 1e3; };
  for (const RoleReport& role : told.roles) {
    text += fmt::format("\"{}\",{},{},{},{},{}", role.name, index(role.rank), role.ranks,
                        ms(told.step), ms(role.time.compute), ms(role.time.bubble));
    for (const Time time : role.time.exposed) text += fmt::format(",{}", ms(time));
    for (const Bytes bytes : role.peak) text += fmt::format(",{}", bytes.count());
    text += fmt::format(",{},{}\n", role.peak_bytes.count(), role.capacity.count());
  }
  return text;
}

}  // namespace rehearse
