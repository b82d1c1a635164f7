// One thread for each worker of the plan. An op that ends counts down those who wait for it; the
// last input hands an op to its worker's mailbox, or runs it next when the worker is its own.
#include "kernels/host_executor.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/comm/mailbox.hpp"
#include "kernels/host_pin.hpp"
#include "kernels/host_plan.hpp"
#include "kernels/host_work.hpp"
#include "sim/cost_model.hpp"
#include "sim/error.hpp"

namespace rehearse {

namespace {

using Clock = Mailbox::Clock;

/// One run: what its workers share.
class HostRun {
 public:
  HostRun(const Program& program, HostMemory& memory, const HostOptions& options)
      : program_{program},
        memory_{memory},
        options_{options},
        plan_{program},
        waits_{std::make_unique<std::atomic<std::uint32_t>[]>(program.size())},
        blockers_(program.size(), no_op),
        mailboxes_{std::make_unique<Mailbox[]>(plan_.workers.size())},
        next_(program.size() + plan_.workers.size(), Mailbox::nothing) {
    for (std::size_t i = 0; i < program.size(); ++i)
      waits_[i].store(plan_.waits[i], std::memory_order_relaxed);
    timeline_.spans.resize(program.size());
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    spins_ = plan_.workers.size() <= cores ? 20'000 : 200;
  }

  Timeline run() {
    std::vector<std::jthread> threads;
    for (std::uint32_t w = 0; w < plan_.workers.size(); ++w)
      threads.emplace_back([this, w] { work(w); });
    while (arrived_.load(std::memory_order_acquire) < plan_.workers.size())
      std::this_thread::yield();
    start_ = Clock::now();
    gate_.store(1, std::memory_order_release);
    watch();
    threads.clear();
    if (failure_) std::rethrow_exception(failure_);
    timeline_.events = program_.size();
    for (std::size_t i = 0; i < program_.size(); ++i) {
      timeline_.spans[i].blocker = blockers_[i];
      timeline_.makespan = std::max(timeline_.makespan, timeline_.spans[i].end);
    }
    return std::move(timeline_);
  }

 private:
  Time since_start(Clock::time_point at) const {
    return Time::picoseconds(std::chrono::nanoseconds(at - start_).count() * 1000);
  }

  // The caller's thread sleeps until all workers are done, and asks now and then whether to stop.
  void watch() {
    const auto all = static_cast<std::uint32_t>(plan_.workers.size());
    for (std::uint32_t done; (done = finished_.load(std::memory_order_acquire)) < all;) {
      wait_while(finished_, done, Clock::now() + std::chrono::milliseconds(50));
      if (options_.stop && !stopped_.load() && options_.stop())
        fail(std::make_exception_ptr(DeviceError("stopped before the end")));
    }
  }

  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(guard_);
    if (stopped_.exchange(true)) return;
    failure_ = failure;
    // An item beyond the ops only wakes; `stopped_` says why.
    for (std::size_t w = 0; w < plan_.workers.size(); ++w)
      mailboxes_[w].send(static_cast<std::uint32_t>(program_.size() + w), next_);
  }

  struct Waiting {  // a paced compute
    Clock::time_point until;
    OpId op{};
  };
  struct Self {
    std::uint32_t number = 0, left = 0;  // ops to go
    std::deque<OpId> ready;
    std::vector<Waiting> waiting;             // the earliest last
    std::map<Stream, std::deque<OpId>> busy;  // paced queues: what waits behind the one that runs
    OpId before = no_op;                      // what it did last, and until when
    Time busy_until;
  };

  void work(std::uint32_t number) {
    const HostPlan::Worker& what = plan_.workers[number];
    if (options_.pin) pin_to_processor(index(what.rank), pinned_ranks());
    if (options_.compute == HostCompute::paced) sharpen_timers();
    Self self{.number = number, .left = what.ops};
    for (std::size_t i = 0; i < program_.size(); ++i)
      if (plan_.worker_of[i] == number && plan_.waits[i] == 0)
        self.ready.push_back(static_cast<OpId>(i));
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    // Awake, so that all begin at once: waking a thread takes as long as a small collective.
    while (gate_.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    try {
      while (self.left > 0 && !stopped_.load(std::memory_order_relaxed)) step(self);
    } catch (...) {
      fail(std::current_exception());
    }
    finished_.fetch_add(1, std::memory_order_acq_rel);
    wake_all(finished_);
  }

  std::size_t pinned_ranks() const {
    std::size_t ranks = 0;
    for (const HostPlan::Worker& worker : plan_.workers)
      ranks = std::max(ranks, index(worker.rank) + 1);
    return ranks;
  }

  void step(Self& self) {
    receive(self);
    while (!self.waiting.empty() && self.waiting.back().until <= Clock::now()) {
      const OpId op = self.waiting.back().op;
      self.waiting.pop_back();
      finish(self, op);
    }
    if (self.ready.empty()) return self.left > 0 ? wait(self) : void();
    const OpId op = self.ready.front();
    self.ready.pop_front();
    if (!must_queue(self, op)) begin(self, op);
  }

  // A worker that runs its ops serves a queue one by one anyway; one that only waits for them could
  // begin the next.
  bool must_queue(Self& self, OpId id) const {
    const Stream stream = program_[id].stream;
    if (!is_queue(stream) || options_.compute != HostCompute::paced) return false;
    const auto [queue, is_free] = self.busy.try_emplace(stream);
    if (!is_free) queue->second.push_back(id);
    return !is_free;
  }

  void free_queue(Self& self, OpId id) const {
    const auto queue = self.busy.find(program_[id].stream);
    if (queue == self.busy.end()) return;
    const std::deque<OpId> waiting = std::move(queue->second);
    self.busy.erase(queue);
    self.ready.insert(self.ready.begin(), waiting.begin(), waiting.end());
  }

  void receive(Self& self) {
    for (std::uint32_t item = mailboxes_[self.number].take(next_); item != Mailbox::nothing;) {
      const std::uint32_t following = next_[item];
      if (item < program_.size()) self.ready.push_back(static_cast<OpId>(item));
      item = following;
    }
  }

  void wait(Self& self) {
    Mailbox& mailbox = mailboxes_[self.number];
    for (int i = 0; i < spins_ && self.waiting.empty(); ++i) {
      if (!mailbox.is_empty()) return;
      __builtin_ia32_pause();
    }
    const auto limit =
        self.waiting.empty() ? Clock::now() + std::chrono::seconds(1) : self.waiting.back().until;
    mailbox.sleep_until(limit);
  }

  void begin(Self& self, OpId id) {
    const Program::Op& op = program_[id];
    const auto now = Clock::now();
    Timeline::Span& span = timeline_.spans[index(id)];
    span.begin = since_start(now);
    // It was ready before its worker was: what the worker did before held it up.
    if (self.before != no_op && ready_since(id) < self.busy_until)
      blockers_[index(id)] = self.before;
    if (op.kind == WorkKind::compute && options_.compute == HostCompute::paced) {
      const auto pace = std::chrono::nanoseconds(options_.pace.at(index(id)).ps() / 1000);
      if (pace.count() == 0) return finish(self, id);
      self.waiting.push_back({now + pace, id});
      std::sort(self.waiting.begin(), self.waiting.end(),
                [](const Waiting& a, const Waiting& b) { return a.until > b.until; });
      return;
    }
    if (op.kind == WorkKind::transfer)
      run_transfer(program_, program_.transfer(op), memory_);
    else if (op.kind == WorkKind::compute)
      run_compute(program_, op, memory_);
    finish(self, id);
  }

  Time ready_since(OpId id) const {
    const OpId blocker = blockers_[index(id)];
    return blocker == no_op ? Time{} : timeline_.spans[index(blocker)].end;
  }

  void finish(Self& self, OpId id) {
    const Time end = since_start(Clock::now());
    timeline_.spans[index(id)].end = end;
    self.before = id;
    self.busy_until = end;
    --self.left;
    if (!self.busy.empty()) free_queue(self, id);
    for (const OpId next : plan_.next(id)) {
      if (waits_[index(next)].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      blockers_[index(next)] = id;
      const std::uint32_t worker = plan_.worker_of[index(next)];
      if (worker == self.number)
        self.ready.push_back(next);
      else
        mailboxes_[worker].send(static_cast<std::uint32_t>(index(next)), next_);
    }
  }

  const Program& program_;
  HostMemory& memory_;
  const HostOptions& options_;
  HostPlan plan_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> waits_;
  std::vector<OpId> blockers_;
  std::unique_ptr<Mailbox[]> mailboxes_;
  std::vector<std::uint32_t> next_;
  Timeline timeline_;
  Clock::time_point start_;
  int spins_ = 0;
  std::atomic<std::uint32_t> arrived_{0}, gate_{0}, finished_{0};
  std::atomic<bool> stopped_{false};
  std::mutex guard_;  // of failure_
  std::exception_ptr failure_;
};

}  // namespace

Timeline HostExecutor::run(const Program& program) {
  if (options_.compute == HostCompute::paced) ASSERT(options_.pace.size() == program.size());
  return HostRun(program, memory_, options_).run();
}

std::vector<Time> modelled_pace(const Program& program, const Topology& topology,
                                const CostModel& cost) {
  static const Accelerator unknown;
  std::vector<Time> pace(program.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Op& op = program.ops()[i];
    if (op.kind != WorkKind::compute) continue;
    const Device& device = topology[topology.device_of(op.rank)];
    const bool is_known = device.accelerator < topology.accelerators.size();
    pace[i] = duration_of(program.compute(op),
                          is_known ? topology.accelerators[device.accelerator] : unknown, cost);
  }
  return pace;
}

}  // namespace rehearse
