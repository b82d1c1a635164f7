// A worker of the host executor: it runs the ops of a rank's compute stream, or of all its others,
// one after the other as they become ready. An op that ends counts down those who wait for it; the
// last input hands an op to its worker's mailbox, or runs it next when the worker is its own.
// All of it is here because an empty op takes 60 ns: calls between files would be felt.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "kernels/host/host_executor.hpp"
#include "kernels/host/host_plan.hpp"
#include "kernels/host/host_work.hpp"
#include "kernels/host/mailbox.hpp"
#include "kernels/host/task_pool.hpp"

namespace rehearse {

/// Of each op in a run: for how many it still waits, when it ran, and who held it up.
class OpProgress {
 public:
  using Clock = Mailbox::Clock;

  explicit OpProgress(const Program& program)
      : plan_{program},
        waits_{std::make_unique<std::atomic<std::uint32_t>[]>(program.size())},
        blockers_(program.size(), no_op) {
    for (std::size_t i = 0; i < program.size(); ++i)
      waits_[i].store(plan_.waits[i], std::memory_order_relaxed);
    timeline_.spans.resize(program.size());
  }

  const HostPlan& plan() const { return plan_; }
  void start() { start_ = Clock::now(); }

  /// On a worker that has ended `before` at `free_since`.
  Clock::time_point begin(OpId id, OpId before, Time free_since) {
    const auto now = Clock::now();
    timeline_.spans[index(id)].begin = since_start(now);
    // It was ready before its worker was: what the worker did before held it up.
    OpId& blocker = blockers_[index(id)];
    const Time ready = blocker == no_op ? Time{} : timeline_.spans[index(blocker)].end;
    if (before != no_op && ready < free_since) blocker = before;
    return now;
  }
  Time end(OpId id) { return timeline_.spans[index(id)].end = since_start(Clock::now()); }

  /// One of those it waits for has ended; true: the last of them.
  bool release(OpId id, OpId input) {
    if (waits_[index(id)].fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
    blockers_[index(id)] = input;
    return true;
  }

  Timeline take_timeline() {
    timeline_.events = blockers_.size();
    for (std::size_t i = 0; i < blockers_.size(); ++i) {
      timeline_.spans[i].blocker = blockers_[i];
      timeline_.makespan = std::max(timeline_.makespan, timeline_.spans[i].end);
    }
    return std::move(timeline_);
  }

 private:
  Time since_start(Clock::time_point at) const {
    return Time::picoseconds(std::chrono::nanoseconds(at - start_).count() * 1000);
  }

  HostPlan plan_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> waits_;
  std::vector<OpId> blockers_;
  Timeline timeline_;
  Clock::time_point start_;
};

/// A mailbox for each worker.
class HostMail {
 public:
  HostMail(std::size_t ops, std::size_t workers)
      : ops_{ops},
        mailboxes_{std::make_unique<Mailbox[]>(workers)},
        next_(ops + workers, Mailbox::nothing) {}

  Mailbox& operator[](std::uint32_t worker) { return mailboxes_[worker]; }

  /// `seat`: the sender's, where workers take turns.
  void send(std::uint32_t worker, OpId op, TaskPool::Seat* seat) {
    mailboxes_[worker].send(static_cast<std::uint32_t>(index(op)), next_);
    if (pool_ != nullptr) pool_->wake(worker, seat);
  }
  /// With nothing to do: an item beyond the ops.
  void wake(std::uint32_t worker) { send(worker, static_cast<OpId>(ops_ + worker), nullptr); }

  void receive(std::uint32_t worker, std::deque<OpId>& ready) {
    for (std::uint32_t item = mailboxes_[worker].take(next_); item != Mailbox::nothing;) {
      const std::uint32_t following = next_[item];
      if (item < ops_) ready.push_back(static_cast<OpId>(item));
      item = following;
    }
  }
  void take_turns(TaskPool* pool) { pool_ = pool; }

 private:
  std::size_t ops_;
  std::unique_ptr<Mailbox[]> mailboxes_;
  std::vector<std::uint32_t> next_;
  TaskPool* pool_ = nullptr;
};

class alignas(64) HostWorker {
 public:
  using Clock = OpProgress::Clock;

  /// All outlive it.
  HostWorker(std::uint32_t number, const Program& program, HostMemory& memory,
             const HostOptions& options, OpProgress& progress, HostMail& mail)
      : program_{program},
        memory_{memory},
        options_{options},
        progress_{progress},
        mail_{mail},
        number_{number},
        left_{progress.plan().workers[number].ops} {}

  bool is_done() const { return left_ == 0; }
  Time busy_until() const { return busy_until_; }
  /// When a paced compute ends; the end of time if there is none.
  Clock::time_point next_moment() const {
    return paced_.empty() ? Clock::time_point::max() : paced_.back().until;
  }

  /// What there is to do now, one op at most; false: nothing. `seat`: where it has its turn.
  bool step(TaskPool::Seat* seat = nullptr) {
    mail_.receive(number_, ready_);
    bool any = false;
    for (; !paced_.empty() && paced_.back().until <= Clock::now(); any = true) {
      const OpId op = paced_.back().op;
      paced_.pop_back();
      finish(op, seat);
    }
    if (ready_.empty()) return any;
    const OpId op = ready_.front();
    ready_.pop_front();
    if (!must_queue(op)) begin(op, seat);
    return true;
  }

  /// Until there may be something to do: first looking `spins` times, then asleep.
  void wait(int spins) {
    Mailbox& mailbox = mail_[number_];
    for (int i = 0; i < spins && paced_.empty(); ++i) {
      if (!mailbox.is_empty()) return;
      __builtin_ia32_pause();
    }
    mailbox.sleep_until(std::min(next_moment(), Clock::now() + std::chrono::seconds(1)));
  }

 private:
  struct Paced {
    Clock::time_point until;
    OpId op{};
  };

  // A worker that runs its ops serves a queue one by one anyway; one that only waits for them could
  // begin the next.
  bool must_queue(OpId id) {
    const Stream stream = program_[id].stream;
    if (!is_queue(stream) || options_.compute != HostCompute::paced) return false;
    const auto [queue, is_free] = busy_.try_emplace(stream);
    if (!is_free) queue->second.push_back(id);
    return !is_free;
  }

  void free_queue(OpId id) {
    const auto queue = busy_.find(program_[id].stream);
    if (queue == busy_.end()) return;
    const std::deque<OpId> waiting = std::move(queue->second);
    busy_.erase(queue);
    ready_.insert(ready_.begin(), waiting.begin(), waiting.end());
  }

  void begin(OpId id, TaskPool::Seat* seat) {
    const Program::Op& op = program_[id];
    const auto now = progress_.begin(id, before_, busy_until_);
    if (op.kind == WorkKind::compute && options_.compute == HostCompute::paced) {
      const auto pace = std::chrono::nanoseconds(options_.pace.at(index(id)).ps() / 1000);
      if (pace.count() == 0) return finish(id, seat);
      paced_.push_back({now + pace, id});
      std::sort(paced_.begin(), paced_.end(),
                [](const Paced& a, const Paced& b) { return a.until > b.until; });
      return;
    }
    if (op.kind == WorkKind::transfer)
      run_transfer(program_, program_.transfer(op), memory_);
    else if (op.kind == WorkKind::compute)
      run_compute(program_, op, memory_);
    finish(id, seat);
  }

  void finish(OpId id, TaskPool::Seat* seat) {
    before_ = id;
    busy_until_ = progress_.end(id);
    --left_;
    if (!busy_.empty()) free_queue(id);
    for (const OpId next : progress_.plan().next(id)) {
      if (!progress_.release(next, id)) continue;
      const std::uint32_t worker = progress_.plan().worker_of[index(next)];
      if (worker == number_)
        ready_.push_back(next);
      else
        mail_.send(worker, next, seat);
    }
  }

  const Program& program_;
  HostMemory& memory_;
  const HostOptions& options_;
  OpProgress& progress_;
  HostMail& mail_;
  std::uint32_t number_, left_;  // ops to go
  std::deque<OpId> ready_;
  std::vector<Paced> paced_;                 // the earliest last
  std::map<Stream, std::deque<OpId>> busy_;  // paced queues: what waits behind the one that runs
  OpId before_ = no_op;                      // what it did last, and until when
  Time busy_until_;
};

}  // namespace rehearse
