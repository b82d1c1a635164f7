// Points are grouped by machine: each is loaded once, and each thread has its predictor for it,
// which remembers groups and collectives from point to point.
#include "tools/sweep/sweep_run.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "sim/base/error.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "sim/scenario/calibration.hpp"
#include "sim/scenario/scenario_cluster.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "strategies/predict/predictor.hpp"
#include "strategies/predict/ready_scenario.hpp"

namespace rehearse {

namespace {

SweepPoint point_of(const Prediction& told) {
  SweepPoint point{.status = SweepPoint::Status::predicted,
                   .reason = {},
                   .step = told.step,
                   .world = told.world,
                   .tensor = told.tensor,
                   .pipeline = told.pipeline,
                   .context = told.context,
                   .expert = told.expert,
                   .data = told.data,
                   .microbatches = told.microbatches,
                   .samples = told.samples,
                   .samples_per_second = told.samples_per_second(),
                   .tokens_per_second = told.tokens_per_second(),
                   .tflops_per_gpu = told.model_flops_per_gpu().count() * 1e-12,
                   .mfu = told.mfu(),
                   .bubble_fraction = told.bubble_fraction(),
                   .mean = told.mean,
                   .peak = {},
                   .capacity = told.roles.front().capacity,
                   .fits = told.fits};
  for (const RoleReport& role : told.roles) point.peak = std::max(point.peak, role.peak_bytes);
  return point;
}

bool runs_on_one_machine(const Scenario& a, const Scenario& b) {
  const Imperfection &here = a.imperfection, &there = b.imperfection;
  return a.cluster == b.cluster && a.calibration == b.calibration &&
         a.training.cuda_graph == b.training.cuda_graph &&
         a.training.graph_node_overhead == b.training.graph_node_overhead &&
         here.slow_cables == there.slow_cables &&
         here.slow_cable_factor == there.slow_cable_factor &&
         here.slow_cable_latency == there.slow_cable_latency;
}

/// Points that share a machine, what was measured of it, and a model.
struct Batch {
  std::vector<std::size_t> points;
  std::optional<Calibration> profile;
};

class Sweep {
 public:
  explicit Sweep(const SweepJob& job) : job_{job}, points_(point_count(job.axes)) {}

  std::vector<SweepPoint> run() {
    check_values();
    std::map<std::vector<std::size_t>, Batch> batches;
    constexpr std::size_t in_a_row = 8;  // neighbours often share their groups
    for (std::size_t p = 0; p < points_.size(); ++p) {
      if (p / in_a_row % job_.shares != job_.share) continue;
      std::vector<std::size_t> at = coordinates_of(job_.axes, p);
      for (std::size_t a = 0; a < at.size(); ++a)
        if (!job_.axes[a].changes_cluster() && !job_.axes[a].changes_model()) at[a] = 0;
      batches[at].points.push_back(p);
    }
    for (auto& [key, batch] : batches)
      if (!job_.stop()) run(batch);
    return std::move(points_);
  }

 private:
  // A value that its key can never have is a mistake, not a point that does not come out even.
  void check_values() const {
    std::vector<Problem> problems;
    for (const Axis& axis : job_.axes)
      for (const Setting& setting : axis.settings) {
        Scenario scenario = job_.loaded.scenario;
        try {
          apply(setting, scenario);
        } catch (const InputError& error) {
          problems.insert(problems.end(), error.problems().begin(), error.problems().end());
        }
      }
    if (!problems.empty()) throw InputError(std::move(problems));
  }

  void run(Batch& batch) {
    const Scenario first = scenario_at(job_.loaded.scenario, job_.axes, batch.points.front());
    const bool same_cluster = runs_on_one_machine(first, job_.loaded.scenario);
    const bool same_model = first.model == job_.loaded.scenario.model;
    std::optional<Topology> topology;
    std::optional<Workload> workload;
    try {
      batch.profile = profile_of(first);
      if (!same_cluster) topology = machine_of(first, topology_of(first.cluster), batch.profile);
      if (!same_model) workload = build_workload(first.model);
    } catch (const InputError& error) {
      for (const std::size_t p : batch.points) refuse(points_[p], error.problems().front().message);
      done_ += batch.points.size();
      return;
    }
    run(batch, same_cluster ? job_.loaded.topology : *topology,
        same_model ? job_.loaded.workload : *workload);
  }

  void run(const Batch& batch, const Topology& topology, const Workload& workload) {
    const std::size_t threads = std::clamp<std::size_t>(job_.threads, 1, batch.points.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&](bool tells) {
      const ShapedRoofline cost;
      StepPredictor predictor(topology, cost);
      // Neighbouring points often share their groups: a thread takes some in a row.
      const std::size_t stride = std::clamp<std::size_t>(batch.points.size() / threads / 8, 1, 32);
      for (std::size_t i = next.fetch_add(stride); i < batch.points.size();
           i = next.fetch_add(stride))
        for (std::size_t k = i; k < std::min(i + stride, batch.points.size()); ++k) {
          if (job_.stop()) return;
          predict(predictor, topology, workload, batch.profile, batch.points[k]);
          if (tells) tell();
        }
    };
    std::exception_ptr failure;
    std::mutex guard;
    const auto guarded = [&](bool tells) {
      try {
        work(tells);
      } catch (...) {
        const std::lock_guard lock(guard);
        failure = std::current_exception();
        next = batch.points.size();
      }
    };
    {
      std::vector<std::jthread> workers;
      for (std::size_t t = 1; t < threads; ++t) workers.emplace_back(guarded, false);
      guarded(true);
    }
    if (failure) std::rethrow_exception(failure);
  }

  void predict(StepPredictor& predictor, const Topology& topology, const Workload& workload,
               const std::optional<Calibration>& profile, std::size_t p) {
    try {
      const Scenario scenario =
          with_launches(scenario_at(job_.loaded.scenario, job_.axes, p), profile);
      const std::vector<KeyProblem> problems = scenario_problems(scenario, workload, topology);
      if (problems.empty())
        points_[p] = point_of(predictor.quick(scenario, workload));
      else
        refuse(points_[p], problems.front().message);
      if (points_[p].fits) raise(points_[p].samples_per_second);
    } catch (const InputError& error) {
      refuse(points_[p], error.problems().front().message);
    }
    ++done_;
  }
  static void refuse(SweepPoint& point, std::string reason) {
    point.status = SweepPoint::Status::uneven;
    point.reason = std::move(reason);
  }

  void raise(double rate) {
    double best = best_;
    while (rate > best && !best_.compare_exchange_weak(best, rate)) {
    }
  }
  void tell() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point now = Clock::now();
    if (now - told_ < std::chrono::milliseconds(100)) return;
    told_ = now;
    job_.progress({done_, points_.size(), best_});
  }

  const SweepJob& job_;
  std::vector<SweepPoint> points_;
  std::atomic<std::size_t> done_ = 0;
  std::atomic<double> best_ = 0;
  std::chrono::steady_clock::time_point told_{};
};

}  // namespace

// Thousands of points need the same megabytes one after the other. Given back after each, they
// would come again page by page: a tenth of a sweep's time when measured.
std::vector<SweepPoint> run_sweep(const SweepJob& job) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that malloc takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  return Sweep(job).run();
}

Scenario scenario_at(const Scenario& base, const std::vector<Axis>& axes, std::size_t point) {
  Scenario scenario = base;
  const std::vector<std::size_t> at = coordinates_of(axes, point);
  for (std::size_t a = 0; a < axes.size(); ++a) apply(axes[a].settings[at[a]], scenario);
  return scenario;
}

}  // namespace rehearse
