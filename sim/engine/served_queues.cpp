// A heap for each queue. Times of readiness only grow, but within one instant ops come in any
// order.
#include "sim/engine/served_queues.hpp"

#include <algorithm>

namespace rehearse {

namespace {

constexpr auto later = [](const auto& a, const auto& b) {
  return a.ready != b.ready ? a.ready > b.ready : a.op > b.op;
};

}  // namespace

ServedQueues::ServedQueues(const Program& program)
    : streams_{program.has_queues() ? StreamTable{program} : StreamTable{Program{}}},
      queues_(streams_.size()) {}

void ServedQueues::change(const Program::Op& op) {
  Queue& queue = queue_of(op);
  if (std::exchange(queue.is_changed, true)) return;
  changed_.push_back(streams_.number(op.rank, op.stream));
}

void ServedQueues::add(const Program::Op& op, OpId id, Time now, OpId blocker) {
  Queue& queue = queue_of(op);
  queue.waiting.push_back({now, id, blocker});
  std::push_heap(queue.waiting.begin(), queue.waiting.end(), later);
  if (!queue.is_busy) change(op);
}

void ServedQueues::free(const Program::Op& op, OpId id) {
  Queue& queue = queue_of(op);
  ASSERT(queue.is_busy);
  queue.is_busy = false;
  queue.last = id;
  if (!queue.waiting.empty()) change(op);
}

ServedQueues::Waiting ServedQueues::take(std::uint32_t number, Time now) {
  Queue& queue = queues_[number];
  queue.is_changed = false;
  if (queue.is_busy || queue.waiting.empty()) return {};
  std::pop_heap(queue.waiting.begin(), queue.waiting.end(), later);
  Waiting next = queue.waiting.back();
  queue.waiting.pop_back();
  queue.is_busy = true;
  // Who was ready before now has waited for the queue, and so for whoever left it.
  if (next.ready < now) next.blocker = queue.last;
  return next;
}

}  // namespace rehearse
