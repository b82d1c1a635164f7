// One thread for each worker of the plan, or, with more ranks than processors, one for each
// processor, on which workers take turns. An op that ends counts down those who wait for it; the
// last input hands an op to its worker's mailbox, or runs it next when the worker is its own.
#include "kernels/host/host_executor.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "kernels/host/host_pin.hpp"
#include "kernels/host/host_plan.hpp"
#include "kernels/host/host_work.hpp"
#include "kernels/host/mailbox.hpp"
#include "kernels/host/task_pool.hpp"
#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"

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
    const std::size_t processors = options.processors > 0
                                       ? options.processors
                                       : std::max(1u, std::thread::hardware_concurrency());
    spins_ = plan_.workers.size() <= processors ? 20'000 : 200;
    for (const HostPlan::Worker& worker : plan_.workers)
      ranks_ = std::max(ranks_, index(worker.rank) + 1);
    make_selves();
    if (ranks_ > processors) make_pool(processors);
  }

  Timeline run() {
    std::vector<std::jthread> threads;
    for (std::uint32_t t = 0; t < thread_count(); ++t) threads.emplace_back([this, t] { work(t); });
    while (arrived_.load(std::memory_order_acquire) < thread_count()) std::this_thread::yield();
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
    const auto all = static_cast<std::uint32_t>(thread_count());
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
    for (std::uint32_t w = 0; w < plan_.workers.size(); ++w)
      send(w, static_cast<std::uint32_t>(program_.size() + w), nullptr);
  }

  void send(std::uint32_t worker, std::uint32_t item, TaskPool::Seat* seat) {
    mailboxes_[worker].send(item, next_);
    if (pool_) pool_->wake(worker, seat);
  }

  struct Waiting {  // a paced compute
    Clock::time_point until;
    OpId op{};
  };
  struct alignas(64) Self {
    std::uint32_t number = 0, left = 0;  // ops to go
    std::deque<OpId> ready;
    std::vector<Waiting> waiting;             // the earliest last
    std::map<Stream, std::deque<OpId>> busy;  // paced queues: what waits behind the one that runs
    OpId before = no_op;                      // what it did last, and until when
    Time busy_until;
    TaskPool::Seat* seat = nullptr;  // where it has its turn
  };

  void make_selves() {
    selves_.resize(plan_.workers.size());
    for (std::uint32_t w = 0; w < selves_.size(); ++w) {
      selves_[w].number = w;
      selves_[w].left = plan_.workers[w].ops;
    }
    for (std::size_t i = 0; i < program_.size(); ++i)
      if (plan_.waits[i] == 0) selves_[plan_.worker_of[i]].ready.push_back(static_cast<OpId>(i));
  }

  // Whoever talks goes first: it is short, and others wait for it.
  void make_pool(std::size_t processors) {
    std::vector<bool> talks;
    for (const HostPlan::Worker& worker : plan_.workers) talks.push_back(!worker.computes);
    pool_threads_ = std::min(processors, plan_.workers.size());
    pool_.emplace(talks, [this](std::uint32_t w, TaskPool::Seat& seat) { return turn(w, seat); });
  }

  std::size_t thread_count() const { return pool_ ? pool_threads_ : plan_.workers.size(); }

  void work(std::uint32_t thread) {
    if (options_.pin && pool_)
      pin_to_processor(thread, pool_threads_);
    else if (options_.pin)
      pin_to_processor(index(plan_.workers[thread].rank), ranks_);
    if (options_.compute == HostCompute::paced) sharpen_timers();
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    // Awake, so that all begin at once: waking a thread takes as long as a small collective.
    while (gate_.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    if (pool_)
      pool_->work();
    else
      work_alone(selves_[thread]);
    finished_.fetch_add(1, std::memory_order_acq_rel);
    wake_all(finished_);
  }

  void work_alone(Self& self) {
    try {
      while (self.left > 0 && !stopped_.load(std::memory_order_relaxed))
        if (!step(self)) wait(self);
    } catch (...) {
      fail(std::current_exception());
    }
  }

  // Short ops one after the other; but whoever one of them has woken does not wait for the next.
  TaskPool::Wish turn(std::uint32_t worker, TaskPool::Seat& seat) {
    using Kind = TaskPool::Wish::Kind;
    constexpr Time slice = Time::picoseconds(20'000'000);
    Self& self = selves_[worker];
    self.seat = &seat;
    const Time begin = self.busy_until;
    try {
      while (self.left > 0 && !stopped_.load(std::memory_order_relaxed)) {
        if (!step(self)) return {Kind::rest, next_moment(self)};
        if (seat.next != TaskPool::nobody || self.busy_until - begin > slice) return {Kind::again};
      }
    } catch (...) {
      fail(std::current_exception());
    }
    return {Kind::done};
  }

  static Clock::time_point next_moment(const Self& self) {
    return self.waiting.empty() ? Clock::time_point::max() : self.waiting.back().until;
  }

  /// What there is to do now, one op at most; false: nothing.
  bool step(Self& self) {
    receive(self);
    bool any = false;
    for (; !self.waiting.empty() && self.waiting.back().until <= Clock::now(); any = true) {
      const OpId op = self.waiting.back().op;
      self.waiting.pop_back();
      finish(self, op);
    }
    if (self.ready.empty()) return any;
    const OpId op = self.ready.front();
    self.ready.pop_front();
    if (!must_queue(self, op)) begin(self, op);
    return true;
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
    mailbox.sleep_until(std::min(next_moment(self), Clock::now() + std::chrono::seconds(1)));
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
        send(worker, static_cast<std::uint32_t>(index(next)), self.seat);
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
  std::vector<Self> selves_;  // by worker
  std::size_t ranks_ = 0, pool_threads_ = 0;
  std::optional<TaskPool> pool_;  // with more ranks than processors
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
  ASSERT(options_.parts.empty());
  if (options_.compute == HostCompute::paced) ASSERT(options_.pace.size() == program.size());
  return HostRun(program, memory_, options_).run();
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
