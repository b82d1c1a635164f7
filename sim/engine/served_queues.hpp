// Who is next on the queues of a Program: whoever has been ready longest, then the lower op. Both
// engines ask here, so that they cannot have two opinions.
//
//   ready   a(3)      c(5)  b(5)               b before c: ready in the same instant, lower op
//   queue   ────[ a          ][ b ][ c   ]──▶  one at a time, never idle while somebody waits
//
// Engines add whoever becomes ready, and serve when an instant is over: until then somebody with a
// lower number may still become ready in it. What an op of no duration lets go in the same instant
// comes after those that were served in it.
#pragma once

#include <utility>
#include <vector>

#include "sim/program/program.hpp"
#include "sim/program/stream_table.hpp"

namespace rehearse {

class ServedQueues {
 public:
  explicit ServedQueues(const Program& program);

  /// All that `op` names has ended; `blocker` did last.
  void add(const Program::Op& op, OpId id, Time now, OpId blocker);
  /// `op`, which was being served, leaves its queue to the next one.
  void free(const Program::Op& op, OpId id);

  /// Whether serve() could have something to do.
  bool may_serve() const { return !changed_.empty(); }
  /// Calls begin(op, blocker) for whoever is next on each queue that is free.
  template <class Begin>
  void serve(Time now, Begin begin) {
    serving_.clear();
    for (const std::uint32_t number : std::exchange(changed_, {}))
      if (const Waiting next = take(number, now); next.op != no_op) serving_.push_back(next);
    for (const Waiting& next : serving_) begin(next.op, next.blocker);
  }

 private:
  struct Waiting {
    Time ready;
    OpId op = no_op, blocker = no_op;
  };
  struct Queue {
    std::vector<Waiting> waiting;  // a heap, the next one first
    bool is_busy = false, is_changed = false;
    OpId last = no_op;
  };

  Queue& queue_of(const Program::Op& op) { return queues_[streams_.number(op.rank, op.stream)]; }
  void change(const Program::Op& op);
  Waiting take(std::uint32_t number, Time now);

  StreamTable streams_;
  std::vector<Queue> queues_;           // by number of the stream
  std::vector<std::uint32_t> changed_;  // since they were last served, each once
  std::vector<Waiting> serving_;
};

}  // namespace rehearse
