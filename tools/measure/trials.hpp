// Small Programs on real ranks, run in turns: a machine that changes its speed from one second to
// the next does so for all of them alike.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tools/measure/host_ranks.hpp"

namespace rehearse {

/// One of them, made ready once; every run is kept but the first, which warms up.
class Trial {
 public:
  Trial(const HostRanks& ranks, Program program, std::function<bool()> stop);
  Trial(const Trial&) = delete;  // the executor knows where program and memory are
  Trial& operator=(const Trial&) = delete;

  void run() { runs_.push_back(executor_->run(program_)); }
  const Program& program() const { return program_; }
  const std::vector<Timeline>& runs() const { return runs_; }

 private:
  Program program_;
  HostMemory memory_;
  std::unique_ptr<Executor> executor_;
  std::vector<Timeline> runs_;
};

class Trials {
 public:
  /// Ends with DeviceError in the middle of a run when asked to stop.
  explicit Trials(const HostRanks& ranks, std::function<bool()> stop = {})
      : ranks_{ranks}, stop_{std::move(stop)} {}

  /// Stays where it is.
  const Trial& add(Program program) { return all_.emplace_back(ranks_, std::move(program), stop_); }
  void round() {
    for (Trial& trial : all_) trial.run();
  }

 private:
  const HostRanks& ranks_;
  std::function<bool()> stop_;
  std::deque<Trial> all_;
};

/// In seconds.
double median_makespan(const Trial& trial);

}  // namespace rehearse
