// What happens when: a radix heap on the integer clock. A simulation never looks back, so the queue
// may be monotone, and equal times come out together in one batch.
//
// Entries lie in buckets by the highest bit in which they differ from the last time taken out. Each
// redistribution moves an entry to a lower bucket, and the symmetric programs that matter most (a
// thousand transfers ending in the same picosecond) move as one block.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"

namespace rehearse {

template <class Payload>
class EventQueue {
 public:
  struct Entry {
    Time time;
    Payload payload;
  };

  /// `time` must not lie before the last batch taken out.
  void push(Time time, Payload payload) {
    ASSERT(time >= now_);
    buckets_[bucket(time)].push_back({time, payload});
    ++size_;
  }

  bool empty() const { return size_ == 0; }
  /// Whether the current time still has events.
  bool due_now() const { return !buckets_[0].empty(); }
  Time now() const { return now_; }

  /// Swaps all events of the earliest time into `batch` and moves the clock there.
  void pop_batch(std::vector<Entry>& batch) {
    ASSERT(size_ > 0);
    if (buckets_[0].empty()) advance();
    batch.clear();
    std::swap(batch, buckets_[0]);
    size_ -= batch.size();
  }

 private:
  std::size_t bucket(Time time) const {
    return static_cast<std::size_t>(
        std::bit_width(static_cast<std::uint64_t>(time.ps() ^ now_.ps())));
  }

  void advance() {
    std::size_t lowest = 1;
    while (buckets_[lowest].empty()) ++lowest;
    std::vector<Entry>& from = buckets_[lowest];
    const auto [first, last] = std::minmax_element(
        from.begin(), from.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
    const bool all_equal = first->time == last->time;
    now_ = first->time;
    if (all_equal) return std::swap(from, buckets_[0]);
    for (const Entry& entry : from) buckets_[bucket(entry.time)].push_back(entry);
    from.clear();
  }

  std::array<std::vector<Entry>, 65> buckets_;
  Time now_;
  std::size_t size_ = 0;
};

}  // namespace rehearse
