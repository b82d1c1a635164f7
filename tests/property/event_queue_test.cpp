// The radix heap against a std::multimap: the same batches, complete, in the order of time.
#include "sim/engine/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "tests/support/random_program.hpp"

namespace rehearse::event_queue_test {
namespace {

using Queue = EventQueue<std::uint32_t>;

// Near and far, and often exactly a power of two away or at a time already taken.
Time random_later(Draw& draw, const std::multimap<Time, std::uint32_t>& waiting, Time now) {
  if (draw.once_in(4)) return now;
  if (!waiting.empty() && draw.once_in(3)) {
    auto at = waiting.begin();
    std::advance(at,
                 static_cast<std::ptrdiff_t>(draw.below(std::min<std::size_t>(waiting.size(), 8))));
    return at->first;
  }
  const std::size_t bits = draw.below(40);
  const auto span = static_cast<std::int64_t>(std::size_t{1} << bits);
  const auto more = static_cast<std::int64_t>(draw.below(std::size_t{1} << bits));
  return now + Time::picoseconds(draw.once_in(3) ? span : more);
}

class Twins {
 public:
  explicit Twins(std::uint64_t seed) : draw_{seed} {}

  void push() {
    const Time time = random_later(draw_, expected_, queue_.now());
    queue_.push(time, next_);
    expected_.emplace(time, next_++);
  }

  void pop() {
    ASSERT_EQ(queue_.empty(), expected_.empty());
    if (expected_.empty()) return;
    const Time earliest = expected_.begin()->first;
    ASSERT_EQ(queue_.due_now(), earliest == queue_.now());
    queue_.pop_batch(batch_);
    ASSERT_EQ(queue_.now(), earliest);
    std::vector<std::uint32_t> got, wanted;
    for (const Queue::Entry& entry : batch_) {
      ASSERT_EQ(entry.time, earliest);
      got.push_back(entry.payload);
    }
    const auto [begin, end] = expected_.equal_range(earliest);
    for (auto at = begin; at != end; ++at) wanted.push_back(at->second);
    expected_.erase(begin, end);
    std::sort(got.begin(), got.end());
    std::sort(wanted.begin(), wanted.end());
    ASSERT_EQ(got, wanted);
  }

  Draw& draw() { return draw_; }
  bool empty() const { return expected_.empty(); }

 private:
  Draw draw_;
  Queue queue_;
  std::multimap<Time, std::uint32_t> expected_;
  std::vector<Queue::Entry> batch_;
  std::uint32_t next_ = 0;
};

TEST(EventQueue, EqualsAMultimap) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Twins twins(seed);
    for (std::size_t step = 0; step < 300; ++step) {
      for (std::size_t i = twins.draw().below(4); i > 0; --i) twins.push();
      twins.pop();
      if (HasFatalFailure()) return;
    }
    while (!twins.empty()) {
      twins.pop();
      if (HasFatalFailure()) return;
    }
  }
}

TEST(EventQueue, ReachesTheEndOfTime) {
  Queue queue;
  std::vector<Queue::Entry> batch;
  queue.push(Time::never(), 2);
  queue.push(Time::picoseconds(1), 1);
  queue.pop_batch(batch);
  EXPECT_EQ(batch.front().payload, 1u);
  queue.pop_batch(batch);
  EXPECT_EQ(batch.front().payload, 2u);
  EXPECT_EQ(queue.now(), Time::never());
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, RefusesThePast) {
  Queue queue;
  std::vector<Queue::Entry> batch;
  queue.push(5_ns, 0);
  queue.pop_batch(batch);
  EXPECT_THROW(queue.push(4_ns, 1), std::logic_error);
}

}  // namespace
}  // namespace rehearse::event_queue_test
