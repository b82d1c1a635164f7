// Many tasks that take turns on a few threads, when a thread for each would outnumber the
// processors: going from one to the next is a function call, and no thread is woken for it.
//
//   thread 0   [a][b][a]......[d]     a wakes b: b is next on the same thread, without a queue
//   thread 1   [c][c][e][f]           what a thread cannot take next waits in a queue for all
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace rehearse {

class TaskPool {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t nobody = UINT32_MAX;

  /// A thread of the pool: who has its next turn.
  struct Seat {
    std::uint32_t next = nobody;
    std::uint32_t turns = 0;
  };
  /// What a task wants after a turn: another soon, one when it is woken or the time has come, or
  /// none any more.
  struct Wish {
    enum class Kind : std::uint8_t { again, rest, done };
    Kind kind{};
    Clock::time_point until = Clock::time_point::max();
  };
  /// A turn must not wait for anything, and must not throw.
  using Turn = std::function<Wish(std::uint32_t task, Seat& seat)>;

  /// Those of `hurried` need not queue behind the others. All tasks have a first turn.
  TaskPool(const std::vector<bool>& hurried, Turn turn);

  /// Something has come for the task: it will have a turn that begins after this. `seat` is the
  /// caller's, if it is in a turn.
  void wake(std::uint32_t task, Seat* seat);
  /// Turns on the calling thread, until all tasks are done.
  void work();

 private:
  class Lock;
  // Bits of a task's state.
  static constexpr std::uint8_t woken = 1;   // since its last turn began
  static constexpr std::uint8_t active = 2;  // queued or in a turn

  void push(std::uint32_t task);
  void settle(std::uint32_t task, const Wish& wish, Seat& seat);
  std::uint32_t choose(Seat& seat);
  std::uint32_t pop();
  void ring_timers(Seat& seat);
  void idle();

  std::vector<bool> hurried_;
  Turn turn_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> states_;
  std::atomic_flag guard_ = ATOMIC_FLAG_INIT;  // of the queue and the timers
  std::deque<std::uint32_t> queue_;
  std::vector<std::pair<Clock::time_point, std::uint32_t>> timers_;  // a heap, the earliest first
  alignas(64) std::atomic<std::size_t> queued_{0};
  std::atomic<Clock::rep> earliest_;  // of timers_
  std::atomic<std::size_t> left_;     // tasks
  std::atomic<std::uint32_t> asleep_{0}, bell_{0};
};

}  // namespace rehearse
