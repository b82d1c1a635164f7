// A stack that its receiver takes whole, and turns around. std::atomic::wait has no time limit, and
// paced computes need one, so the futex is called by hand.
#include "kernels/host/mailbox.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace rehearse {

void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                Mailbox::Clock::time_point deadline) {
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4);
  const auto left = std::chrono::nanoseconds(deadline - Mailbox::Clock::now()).count();
  if (left <= 0) return;
  constexpr std::int64_t second = 1'000'000'000, longest = 3600;
  timespec limit{};
  limit.tv_sec = static_cast<std::time_t>(left / second < longest ? left / second : longest);
  limit.tv_nsec = static_cast<long>(left % second);
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &limit, nullptr, 0);
}

void wake_one(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Mailbox::send(std::uint32_t item, std::span<std::uint32_t> next) {
  std::uint32_t before = head_.load(std::memory_order_relaxed);
  do {
    next[item] = before == asleep ? nothing : before;
  } while (!head_.compare_exchange_weak(before, item, std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
  if (before == asleep) wake_all(head_);
}

std::uint32_t Mailbox::take(std::span<std::uint32_t> next) {
  if (is_empty()) return nothing;
  std::uint32_t newest = head_.exchange(nothing, std::memory_order_acquire);
  std::uint32_t oldest = nothing;
  while (newest < asleep) {
    const std::uint32_t before = next[newest];
    next[newest] = oldest;
    oldest = newest;
    newest = before;
  }
  return oldest;
}

void Mailbox::sleep_until(Clock::time_point deadline) {
  std::uint32_t seen = nothing;
  if (!head_.compare_exchange_strong(seen, asleep, std::memory_order_relaxed)) return;
  while (head_.load(std::memory_order_relaxed) == asleep && Clock::now() < deadline)
    wait_while(head_, asleep, deadline);
  seen = asleep;
  head_.compare_exchange_strong(seen, nothing, std::memory_order_relaxed);
}

}  // namespace rehearse
