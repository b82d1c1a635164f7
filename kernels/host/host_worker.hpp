// A worker of the host executor: it runs the ops of a rank's compute stream, or of all its others,
// one after the other as they become ready. An op that ends counts down those who wait for it; the
// last input hands an op to its worker's mailbox, or runs it next when the worker is its own.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "kernels/host/host_executor.hpp"
#include "kernels/host/host_plan.hpp"
#include "kernels/host/mailbox.hpp"
#include "kernels/host/task_pool.hpp"

namespace rehearse {

/// Of each op in a run: for how many it still waits, when it ran, and who held it up.
class OpProgress {
 public:
  using Clock = Mailbox::Clock;

  explicit OpProgress(const Program& program);

  const HostPlan& plan() const { return plan_; }
  void start() { start_ = Clock::now(); }
  /// On a worker that has ended `before` at `free_since`.
  Clock::time_point begin(OpId id, OpId before, Time free_since);
  Time end(OpId id);
  /// One of those it waits for has ended; true: the last of them.
  bool release(OpId id, OpId input);
  Timeline take_timeline();

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
  HostMail(std::size_t ops, std::size_t workers);

  Mailbox& operator[](std::uint32_t worker) { return mailboxes_[worker]; }
  /// `seat`: the sender's, where workers take turns.
  void send(std::uint32_t worker, OpId op, TaskPool::Seat* seat);
  void wake(std::uint32_t worker);  // with nothing to do
  void receive(std::uint32_t worker, std::deque<OpId>& ready);
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
             const HostOptions& options, OpProgress& progress, HostMail& mail);

  bool is_done() const { return left_ == 0; }
  /// What there is to do now, one op at most; false: nothing. `seat`: where it has its turn.
  bool step(TaskPool::Seat* seat = nullptr);
  /// Until there may be something to do: first looking `spins` times, then asleep.
  void wait(int spins);
  Time busy_until() const { return busy_until_; }
  /// When a paced compute ends; the end of time if there is none.
  Clock::time_point next_moment() const;

 private:
  struct Paced {
    Clock::time_point until;
    OpId op{};
  };
  bool must_queue(OpId id);
  void free_queue(OpId id);
  void begin(OpId id, TaskPool::Seat* seat);
  void finish(OpId id, TaskPool::Seat* seat);

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
