// Where a worker is told which ops have become ready: many senders, one receiver, no lock. The
// receiver looks for a while, then sleeps in the kernel until somebody sends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

namespace rehearse {

class Mailbox {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t nothing = UINT32_MAX;

  /// `next` is shared by all mailboxes of a run: one entry for each item, used while it is in one.
  void send(std::uint32_t item, std::span<std::uint32_t> next);
  bool is_empty() const { return head_.load(std::memory_order_relaxed) >= asleep; }
  /// All that has come, the oldest first, linked by `next`; `nothing` when there is none.
  std::uint32_t take(std::span<std::uint32_t> next);
  /// Until something is there or the time has come.
  void sleep_until(Clock::time_point deadline);

 private:
  static constexpr std::uint32_t asleep = UINT32_MAX - 1;
  // The newest item, `nothing`, or `asleep`: then its owner must be woken.
  alignas(64) std::atomic<std::uint32_t> head_{nothing};
};

/// Sleeps while `word` is `expected`, and not beyond the deadline; may return early.
void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                Mailbox::Clock::time_point deadline);
void wake_one(std::atomic<std::uint32_t>& word);
void wake_all(std::atomic<std::uint32_t>& word);

}  // namespace rehearse
