// A task is in one place at a time: with nobody, in the queue, on a seat, or in a turn. Whoever
// wakes a task that is with nobody brings it to one of the others.
#include "kernels/host/task_pool.hpp"

#include <algorithm>
#include <functional>
#include <thread>

#include "kernels/host/mailbox.hpp"

namespace rehearse {

namespace {

constexpr TaskPool::Clock::rep no_timer =
    TaskPool::Clock::time_point::max().time_since_epoch().count();
// An idle thread looks around for about half a millisecond: asleep, waking it would take as long as
// many small ops.
constexpr int looks = 20'000;
// Two tasks that wake each other would keep their seat for ever; so often the queue comes first.
constexpr std::uint32_t longest_talk = 64;

}  // namespace

// Held for some ten instructions. A holder that lost its processor is waited for without one.
class TaskPool::Lock {
 public:
  explicit Lock(std::atomic_flag& guard) : guard_{guard} {
    for (int i = 0; guard_.test_and_set(std::memory_order_acquire); ++i) {
      if (i < 1000)
        __builtin_ia32_pause();
      else
        std::this_thread::yield();
    }
  }
  ~Lock() { guard_.clear(std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::atomic_flag& guard_;
};

TaskPool::TaskPool(const std::vector<bool>& hurried, Turn turn)
    : hurried_{hurried},
      turn_{std::move(turn)},
      states_{std::make_unique<std::atomic<std::uint8_t>[]>(hurried.size())},
      earliest_{no_timer},
      left_{hurried.size()} {
  for (std::uint32_t task = 0; task < hurried.size(); ++task) {
    states_[task].store(active, std::memory_order_relaxed);
    queue_.push_back(task);
  }
  queued_.store(queue_.size());
}

// Either this comes before the beginning of a turn, which then sees what has come, or the end of
// that turn sees this.
void TaskPool::wake(std::uint32_t task, Seat* seat) {
  const std::uint8_t before = states_[task].fetch_or(woken | active, std::memory_order_acq_rel);
  if ((before & active) != 0) return;
  if (seat != nullptr && seat->next == nobody)
    seat->next = task;
  else
    push(task);
}

void TaskPool::push(std::uint32_t task) {
  {
    const Lock lock(guard_);
    if (hurried_[task])
      queue_.push_front(task);
    else
      queue_.push_back(task);
    queued_.store(queue_.size(), std::memory_order_relaxed);
  }
  // Who sleeps said so before it looked into the queue for the last time, behind the same lock.
  if (asleep_.load(std::memory_order_relaxed) == 0) return;
  bell_.fetch_add(1, std::memory_order_release);
  wake_one(bell_);
}

std::uint32_t TaskPool::pop() {
  if (queued_.load(std::memory_order_relaxed) == 0) return nobody;
  const Lock lock(guard_);
  if (queue_.empty()) return nobody;
  const std::uint32_t task = queue_.front();
  queue_.pop_front();
  queued_.store(queue_.size(), std::memory_order_relaxed);
  return task;
}

std::uint32_t TaskPool::choose(Seat& seat) {
  if (seat.next == nobody) return pop();
  const std::uint32_t next = std::exchange(seat.next, nobody);
  if (++seat.turns % longest_talk != 0) return next;
  const std::uint32_t waiting = pop();
  if (waiting == nobody) return next;
  push(next);
  return waiting;
}

void TaskPool::settle(std::uint32_t task, const Wish& wish, Seat& seat) {
  if (wish.kind == Wish::Kind::done) {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    bell_.fetch_add(1, std::memory_order_release);
    return wake_all(bell_);
  }
  std::uint8_t expected = active;
  if (wish.kind == Wish::Kind::rest && wish.until != Clock::time_point::max()) {
    const Lock lock(guard_);
    timers_.emplace_back(wish.until, task);
    std::push_heap(timers_.begin(), timers_.end(), std::greater<>{});
    earliest_.store(timers_.front().first.time_since_epoch().count(), std::memory_order_relaxed);
  }
  if (wish.kind == Wish::Kind::rest &&
      states_[task].compare_exchange_strong(expected, 0, std::memory_order_acq_rel))
    return;
  if (seat.next == nobody && queued_.load(std::memory_order_relaxed) == 0)
    seat.next = task;
  else
    push(task);
}

void TaskPool::ring_timers(Seat& seat) {
  const Clock::rep earliest = earliest_.load(std::memory_order_relaxed);
  if (earliest == no_timer) return;
  const auto now = Clock::now();
  if (now.time_since_epoch().count() < earliest) return;
  std::vector<std::uint32_t> due;
  {
    const Lock lock(guard_);
    while (!timers_.empty() && timers_.front().first <= now) {
      due.push_back(timers_.front().second);
      std::pop_heap(timers_.begin(), timers_.end(), std::greater<>{});
      timers_.pop_back();
    }
    earliest_.store(timers_.empty() ? no_timer : timers_.front().first.time_since_epoch().count(),
                    std::memory_order_relaxed);
  }
  for (const std::uint32_t task : due) wake(task, &seat);
}

void TaskPool::idle() {
  const auto is_due = [&] {
    const Clock::rep earliest = earliest_.load(std::memory_order_relaxed);
    return earliest != no_timer && Clock::now().time_since_epoch().count() >= earliest;
  };
  const auto is_over = [&] { return left_.load(std::memory_order_acquire) == 0; };
  for (int i = 0; i < looks; ++i) {
    if (queued_.load(std::memory_order_relaxed) > 0 || is_over() || is_due()) return;
    __builtin_ia32_pause();
  }
  const std::uint32_t heard = bell_.load(std::memory_order_acquire);
  asleep_.fetch_add(1, std::memory_order_relaxed);
  Clock::time_point until = Clock::now() + std::chrono::seconds(1);
  bool is_empty = false;
  {
    const Lock lock(guard_);
    is_empty = queue_.empty();
    if (!timers_.empty()) until = std::min(until, timers_.front().first);
  }
  if (is_empty && !is_over()) wait_while(bell_, heard, until);
  asleep_.fetch_sub(1, std::memory_order_relaxed);
}

void TaskPool::work() {
  Seat seat;
  while (left_.load(std::memory_order_acquire) > 0) {
    ring_timers(seat);
    const std::uint32_t task = choose(seat);
    if (task == nobody) {
      idle();
      continue;
    }
    states_[task].fetch_and(static_cast<std::uint8_t>(~woken), std::memory_order_acq_rel);
    settle(task, turn_(task, seat), seat);
  }
}

}  // namespace rehearse
