// Rows that share a machine make a batch: it is built once, and its collectives are remembered from
// row to row. How rows fall into batches does not depend on the threads.
#include "tools/accuracy/accuracy_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>

#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/collectives/choose.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "strategies/predict/predictor.hpp"
#include "tools/accuracy/measured_kernel.hpp"
#include "tools/accuracy/measured_machine.hpp"
#include "tools/accuracy/measured_scenario.hpp"

namespace rehearse {

namespace {

struct Machine {
  std::optional<Topology> topology;
  std::string reason;  // why there is none
};

struct Batch {
  const Machine* machine = nullptr;
  std::vector<std::size_t> rows;
};

std::string first_problem(const InputError& error) { return error.problems().front().message; }

// What makes rows one batch, beside the machine: the same collective by the same algorithm.
std::string kind_of(const MeasuredRow& row) {
  const auto* c = std::get_if<CollectiveMeasured>(&row.what);
  if (!c) return fmt::format("{}", row.what.index());
  return fmt::format("{} {} {} {}", c->collective, c->algorithm, c->protocol, c->library_version);
}

// Few enough that both cores have work until the end, many enough to profit from what was
// remembered. All sizes of a collective are one batch.
std::size_t most_rows(const MeasuredRow& row) {
  if (std::holds_alternative<CollectiveMeasured>(row.what)) return 4096;
  return std::holds_alternative<KernelMeasured>(row.what) ? 256 : 16;
}

// "nccl-2.23.4" is 223; 0 where it is not known, and for RCCL, which counts otherwise.
int version_of(const std::string& library) {
  int major = 0, minor = 0;
  if (std::sscanf(library.c_str(), "nccl-%d.%d", &major, &minor) != 2) return 0;
  return 100 * major + minor;
}

std::vector<std::string> wished(const std::string& word) {
  return word == "auto" ? std::vector<std::string>{} : std::vector<std::string>{word};
}

// "compute 71 %, tensor 12 %, bubble 17 %", the mean over all ranks.
std::string time_use(const Prediction& told) {
  static constexpr const char* names[] = {"tensor", "context", "expert", "data", "pipeline"};
  const double whole = told.step.seconds().count();
  const auto share = [&](Time part) { return 100 * part.seconds().count() / whole; };
  std::string text = fmt::format("compute {:.0f} %", share(told.mean.compute));
  for (std::size_t d = 0; d < dimension_count; ++d)
    if (told.mean.exposed[d] > Time{})
      text += fmt::format(", {} {:.1f} %", names[d], share(told.mean.exposed[d]));
  return text + fmt::format(", bubble {:.1f} %", share(told.mean.bubble));
}

class Accuracy {
 public:
  explicit Accuracy(const AccuracyJob& job) : job_{job} {
    for (std::size_t f = 0; f < job_.files.size(); ++f)
      for (std::size_t r = 0; r < job_.files[f].rows.size(); ++r)
        results_.push_back({.file = f, .row = r});
  }

  std::vector<AccuracyRow> run() {
    build_machines();
    const std::vector<Batch> batches = make_batches();
    for_each_in_parallel(batches.size(), job_.threads, [&](std::size_t b) { predict(batches[b]); });
    return std::move(results_);
  }

 private:
  const MeasuredRow& row_of(std::size_t result) const {
    return job_.files[results_[result].file].rows[results_[result].row];
  }

  void build_machines() {
    for (std::size_t r = 0; r < results_.size(); ++r) machines_[hardware_of(row_of(r))];
    std::vector<std::pair<const MeasuredHardware*, Machine*>> all;
    for (auto& [hardware, machine] : machines_) all.emplace_back(&hardware, &machine);
    for_each_in_parallel(all.size(), job_.threads, [&](std::size_t m) {
      try {
        Topology machine = machine_of(*all[m].first);
        if (job_.calibration) machine = apply_known(*job_.calibration, std::move(machine));
        all[m].second->topology = std::move(machine);
      } catch (const InputError& error) {
        all[m].second->reason = first_problem(error);
      }
    });
  }

  std::vector<Batch> make_batches() const {
    std::map<std::pair<const Machine*, std::string>, std::size_t> open;
    std::vector<Batch> batches;
    for (std::size_t r = 0; r < results_.size(); ++r) {
      const Machine* machine = &machines_.at(hardware_of(row_of(r)));
      const auto [at, is_new] = open.try_emplace({machine, kind_of(row_of(r))}, batches.size());
      if (!is_new && batches[at->second].rows.size() >= most_rows(row_of(r)))
        at->second = batches.size();
      if (at->second == batches.size()) batches.push_back({machine, {}});
      batches[at->second].rows.push_back(r);
    }
    // The longest work first: what is begun last is short.
    const auto size = [](const Batch& batch) {
      return batch.machine->topology ? batch.machine->topology->rank_count() : 0;
    };
    std::stable_sort(batches.begin(), batches.end(),
                     [&](const Batch& a, const Batch& b) { return size(a) > size(b); });
    return batches;
  }

  void predict(const Batch& batch) {
    const Machine& machine = *batch.machine;
    if (!machine.topology) {
      for (const std::size_t r : batch.rows) results_[r].reason = machine.reason;
    } else if (std::holds_alternative<CollectiveMeasured>(row_of(batch.rows.front()).what)) {
      predict_collectives(batch);
    } else if (std::holds_alternative<KernelMeasured>(row_of(batch.rows.front()).what)) {
      for (const std::size_t r : batch.rows) attempt(r, [&] { predict_kernel(r, machine); });
    } else {
      const ShapedRoofline cost;
      StepPredictor predictor(*machine.topology, cost);
      for (const std::size_t r : batch.rows)
        attempt(r, [&] { predict_step(r, predictor, *machine.topology); });
    }
    for (const std::size_t r : batch.rows) tell_measured(results_[r], row_of(r));
    tell(batch.rows.size());
  }

  // What we cannot predict is told with its reason; a failed check of our own too.
  template <class Work>
  void attempt(std::size_t result, Work&& work) {
    try {
      work();
    } catch (const InputError& error) {
      results_[result].reason = first_problem(error);
    } catch (const CheckFailed& error) {
      results_[result].reason = error.what();
    }
  }

  void predict_collectives(const Batch& batch) {
    const Topology& topology = *batch.machine->topology;
    const auto& first = std::get<CollectiveMeasured>(row_of(batch.rows.front()).what);
    Routing routing(topology);
    const Roofline cost;
    FastSimulator engine(routing, cost);
    CollectiveShape shape{.kind = collective_kind(first.collective)};
    for (std::size_t r = 0; r < topology.rank_count(); ++r)
      shape.group.push_back(static_cast<Rank>(r));
    std::optional<CollectiveChooser> chooser;
    for (const std::size_t r : batch.rows)
      attempt(r, [&] {
        if (!chooser)
          chooser.emplace(shape, routing,
                          CollectiveChooser::Wish{.algorithms = wished(first.algorithm),
                                                  .protocols = wished(first.protocol),
                                                  .version = version_of(first.library_version)});
        const auto& row = std::get<CollectiveMeasured>(row_of(r).what);
        const Candidate best = chooser->best(Bytes{row.size_bytes}, engine);
        // One call behind another: the GPUs wait for the host where it is the slower one.
        const std::size_t driven = row.launch == "one_process" ? row.hardware.gpus_per_node : 1;
        const Time host = static_cast<std::int64_t>(driven) * topology.library.issue;
        results_[r].predicted = std::max(best.result.time, host).seconds().count() * 1e6;
        results_[r].detail =
            fmt::format("{} {}", best.algorithm, chooser->protocol_name(best.protocol));
      });
  }

  void predict_kernel(std::size_t result, const Machine& machine) {
    const auto& row = std::get<KernelMeasured>(row_of(result).what);
    const KernelTimes times = rehearse::predict_kernel(row, *machine.topology);
    results_[result].predicted = times.predicted.count() * 1e6;
    results_[result].measured = times.measured.count() * 1e6;
  }

  void predict_step(std::size_t result, StepPredictor& predictor, const Topology& topology) {
    const MeasuredRow& row = row_of(result);
    const auto* training = std::get_if<TrainingMeasured>(&row.what);
    MeasuredStep step =
        training ? step_of(*training) : step_of(std::get<DataParallelMeasured>(row.what));
    if (job_.calibration) step.scenario = apply(*job_.calibration, std::move(step.scenario));
    const std::vector<KeyProblem> problems =
        scenario_problems(step.scenario, step.workload, topology);
    if (!problems.empty()) throw InputError(problems.front().message);
    const Prediction told = predictor.quick(step.scenario, step.workload);
    results_[result].predicted = told.step.seconds().count();
    if (training) {
      results_[result].low = told.low().seconds().count();
      results_[result].high = told.high().seconds().count();
    }
    results_[result].runs_out = !told.fits;
    results_[result].detail = time_use(told);
  }

  static void tell_measured(AccuracyRow& result, const MeasuredRow& row) {
    if (const auto* c = std::get_if<CollectiveMeasured>(&row.what)) {
      result.measured = c->time_us;
      result.noisy = c->noisy;
    } else if (const auto* t = std::get_if<TrainingMeasured>(&row.what)) {
      result.measured = t->oom == true ? std::nullopt : t->step_time_s;
      result.ran_out = t->oom;
    } else if (const auto* d = std::get_if<DataParallelMeasured>(&row.what)) {
      result.measured = d->step_time_s;
    }
  }

  void tell(std::size_t rows) {
    using Clock = std::chrono::steady_clock;
    const std::lock_guard lock(guard_);
    done_ += rows;
    const Clock::time_point now = Clock::now();
    if (!job_.progress || now - told_ < std::chrono::milliseconds(100)) return;
    told_ = now;
    job_.progress(done_, results_.size());
  }

  const AccuracyJob& job_;
  std::vector<AccuracyRow> results_;
  std::map<MeasuredHardware, Machine> machines_;
  std::mutex guard_;
  std::size_t done_ = 0;
  std::chrono::steady_clock::time_point told_{};
};

}  // namespace

std::vector<AccuracyRow> run_accuracy(const AccuracyJob& job) { return Accuracy(job).run(); }

}  // namespace rehearse
