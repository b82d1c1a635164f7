// One thread for each worker of the plan, or, with more ranks than processors, one for each
// processor, on which workers take turns.
#include "kernels/host/host_executor.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "kernels/host/host_pin.hpp"
#include "kernels/host/host_worker.hpp"
#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"

namespace rehearse {

namespace {

using Clock = Mailbox::Clock;

/// The threads of one run.
class HostThreads {
 public:
  HostThreads(const Program& program, HostMemory& memory, const HostOptions& options)
      : options_{options},
        progress_{program},
        mail_{program.size(), progress_.plan().workers.size()} {
    const HostPlan& plan = progress_.plan();
    const std::size_t processors = options.processors > 0
                                       ? options.processors
                                       : std::max(1u, std::thread::hardware_concurrency());
    spins_ = plan.workers.size() <= processors ? 20'000 : 200;
    for (const HostPlan::Worker& worker : plan.workers)
      ranks_ = std::max(ranks_, index(worker.rank) + 1);
    for (std::uint32_t w = 0; w < plan.workers.size(); ++w)
      workers_.emplace_back(w, program, memory, options, progress_, mail_);
    for (std::size_t i = 0; i < program.size(); ++i)
      if (plan.waits[i] == 0) mail_.send(plan.worker_of[i], static_cast<OpId>(i), nullptr);
    threads_ = workers_.size();
    if (ranks_ > processors) make_pool(processors);
  }

  Timeline run() {
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < threads_; ++t) threads.emplace_back([this, t] { work(t); });
    while (arrived_.load(std::memory_order_acquire) < threads_) std::this_thread::yield();
    progress_.start();
    gate_.store(1, std::memory_order_release);
    watch();
    threads.clear();
    if (failure_) std::rethrow_exception(failure_);
    return progress_.take_timeline();
  }

 private:
  // Whoever talks goes first: it is short, and others wait for it.
  void make_pool(std::size_t processors) {
    std::vector<bool> talks;
    for (const HostPlan::Worker& worker : progress_.plan().workers)
      talks.push_back(!worker.computes);
    threads_ = std::min(processors, workers_.size());
    pool_.emplace(talks, [this](std::uint32_t w, TaskPool::Seat& seat) { return turn(w, seat); });
    mail_.take_turns(&*pool_);
  }

  // The caller's thread sleeps until all workers are done, and asks now and then whether to stop.
  void watch() {
    for (std::uint32_t done; (done = finished_.load(std::memory_order_acquire)) < threads_;) {
      wait_while(finished_, done, Clock::now() + std::chrono::milliseconds(50));
      if (options_.stop && !stopped_.load() && options_.stop())
        fail(std::make_exception_ptr(DeviceError("stopped before the end")));
    }
  }

  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(guard_);
    if (stopped_.exchange(true)) return;
    failure_ = failure;
    for (std::uint32_t w = 0; w < workers_.size(); ++w) mail_.wake(w);  // to see `stopped_`
  }

  void work(std::uint32_t thread) {
    if (options_.pin && pool_)
      pin_to_processor(thread, threads_);
    else if (options_.pin)
      pin_to_processor(index(progress_.plan().workers[thread].rank), ranks_);
    if (options_.compute == HostCompute::paced) sharpen_timers();
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    // Awake, so that all begin at once: waking a thread takes as long as a small collective.
    while (gate_.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    if (pool_)
      pool_->work();
    else
      work_alone(workers_[thread]);
    finished_.fetch_add(1, std::memory_order_acq_rel);
    wake_all(finished_);
  }

  bool goes_on(const HostWorker& worker) const {
    return !worker.is_done() && !stopped_.load(std::memory_order_relaxed);
  }

  void work_alone(HostWorker& worker) {
    try {
      while (goes_on(worker))
        if (!worker.step()) worker.wait(spins_);
    } catch (...) {
      fail(std::current_exception());
    }
  }

  // Short ops one after the other; but whoever one of them has woken does not wait for the next.
  TaskPool::Wish turn(std::uint32_t number, TaskPool::Seat& seat) {
    using Kind = TaskPool::Wish::Kind;
    constexpr Time slice = Time::picoseconds(20'000'000);
    HostWorker& worker = workers_[number];
    const Time begin = worker.busy_until();
    try {
      while (goes_on(worker)) {
        if (!worker.step(&seat)) return {Kind::rest, worker.next_moment()};
        if (seat.next != TaskPool::nobody || worker.busy_until() - begin > slice)
          return {Kind::again};
      }
    } catch (...) {
      fail(std::current_exception());
    }
    return {Kind::done};
  }

  const HostOptions& options_;
  OpProgress progress_;
  HostMail mail_;
  std::deque<HostWorker> workers_;
  std::optional<TaskPool> pool_;  // with more ranks than processors
  std::size_t ranks_ = 0, threads_ = 0;
  int spins_ = 0;
  std::atomic<std::uint32_t> arrived_{0}, gate_{0}, finished_{0};
  std::atomic<bool> stopped_{false};
  std::mutex guard_;  // of failure_
  std::exception_ptr failure_;
};

}  // namespace

Timeline HostExecutor::run(const Program& program) {
  ASSERT(options_.parts.empty());
  if (options_.compute == HostCompute::paced) ASSERT(options_.pace.size() == program.size());
  return HostThreads(program, memory_, options_).run();
}

std::vector<Time> modelled_pace(const Program& program, const Topology& topology,
                                const CostModel& cost) {
  std::vector<Time> pace(program.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Op& op = program.ops()[i];
    if (op.kind != WorkKind::compute) continue;
    pace[i] = duration_of(program.compute(op), accelerator_of(topology, op.rank), cost);
  }
  return pace;
}

}  // namespace rehearse
