// Tasks on fewer threads than tasks: nobody who was woken is forgotten, nobody has two turns at
// once, and a task that rests until some time has its turn then.
#include "kernels/host/task_pool.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace rehearse::task_pool_test {
namespace {

using Kind = TaskPool::Wish::Kind;

void run(TaskPool& pool, std::size_t threads) {
  std::vector<std::jthread> all;
  for (std::size_t t = 0; t < threads; ++t) all.emplace_back([&] { pool.work(); });
}

/// Tokens go from task to task until all of them together have gone so many times. One that was
/// forgotten would be missing, and with a single one the run would never end.
class Tokens {
 public:
  Tokens(std::size_t tasks, std::uint32_t tokens, std::int64_t times)
      : inboxes_(tasks),
        in_turn_(tasks),
        draws_(tasks),
        left_{times},
        pool_{std::vector<bool>(tasks, false),
              [this](std::uint32_t task, TaskPool::Seat& seat) { return turn(task, seat); }} {
    for (std::size_t i = 0; i < tasks; ++i) draws_[i] = 77 * static_cast<std::uint32_t>(i) + 1;
    inboxes_[0] = tokens;
  }
  void run_on(std::size_t threads) {
    run(pool_, threads);
    EXPECT_EQ(twice_at_once_.load(), 0U);
    EXPECT_LE(left_.load(), 0);
  }

 private:
  TaskPool::Wish turn(std::uint32_t task, TaskPool::Seat& seat) {
    if (in_turn_[task].exchange(true)) ++twice_at_once_;
    for (std::uint32_t token = inboxes_[task].exchange(0); token > 0; --token) {
      draws_[task] = 1664525 * draws_[task] + 1013904223;
      const auto next = static_cast<std::uint32_t>((draws_[task] >> 8) % inboxes_.size());
      ++inboxes_[next];
      pool_.wake(next, &seat);
      if (--left_ == 0)
        for (std::uint32_t each = 0; each < inboxes_.size(); ++each) pool_.wake(each, &seat);
    }
    in_turn_[task] = false;
    return {left_ > 0 ? Kind::rest : Kind::done};
  }

  std::vector<std::atomic<std::uint32_t>> inboxes_;
  std::vector<std::atomic<bool>> in_turn_;
  std::vector<std::uint32_t> draws_;  // each is its task's
  std::atomic<std::int64_t> left_;
  std::atomic<std::uint32_t> twice_at_once_{0};
  TaskPool pool_;
};

TEST(TaskPool, ForgetsNobody) {
  for (const std::size_t threads : {1UL, 2UL, 3UL})
    for (const std::uint32_t tokens : {1U, 2U, 9U}) Tokens(7, tokens, 20'000).run_on(threads);
}

TEST(TaskPool, SleepersAreWoken) {
  // The other thread falls asleep while this one is busy; then there is work for it.
  std::atomic<int> turns{0};
  std::atomic<bool> was_taken{false};
  TaskPool* self = nullptr;
  TaskPool pool({false, false, false}, [&](std::uint32_t task, TaskPool::Seat& seat) {
    ++turns;
    if (task == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      self->wake(1, &seat);  // next on this thread
      self->wake(2, &seat);  // for the other one
      const auto limit = TaskPool::Clock::now() + std::chrono::seconds(10);
      while (!was_taken && TaskPool::Clock::now() < limit) std::this_thread::yield();
      return TaskPool::Wish{Kind::done};
    }
    if (turns <= 3) return TaskPool::Wish{Kind::rest};
    was_taken = was_taken || task == 2;
    return TaskPool::Wish{Kind::done};
  });
  self = &pool;
  run(pool, 2);
  EXPECT_TRUE(was_taken);
}

TEST(TaskPool, RestsUntilTheTime) {
  using std::chrono::milliseconds;
  const auto start = TaskPool::Clock::now();
  std::vector<int> turns(4, 0);
  std::vector<TaskPool::Clock::duration> ends(4);
  TaskPool pool({false, false, false, false}, [&](std::uint32_t task, TaskPool::Seat&) {
    if (turns[task]++ == 0) return TaskPool::Wish{Kind::rest, start + milliseconds(40 - 10 * task)};
    ends[task] = TaskPool::Clock::now() - start;
    return TaskPool::Wish{Kind::done};
  });
  run(pool, 1);
  for (std::uint32_t task = 0; task < 4; ++task) {
    EXPECT_EQ(turns[task], 2);
    EXPECT_GE(ends[task], milliseconds(40 - 10 * task));
    EXPECT_TRUE(task == 0 || ends[task] < ends[task - 1]);
  }
}

}  // namespace
}  // namespace rehearse::task_pool_test
