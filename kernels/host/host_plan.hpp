// A Program made ready to be executed: who waits for whom, and which worker runs what.
//
//   rank 0   worker 0: the compute stream          each worker is one thread; it runs what is
//            worker 1: copies, lanes, queues       ready of its streams, in order on each
//   rank 1   worker 2, worker 3
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

struct HostPlan {
  struct Worker {
    Rank rank{};
    bool computes = false;  // of the compute stream; else everything beside it
    std::uint32_t ops = 0;
  };
  /// The program must be without collectives and unfolded. Throws CheckFailed with the circle of
  /// waiting ops when it cannot finish.
  explicit HostPlan(const Program& program);

  std::span<const OpId> next(OpId id) const {
    const std::size_t begin = next_begin[index(id)], end = next_begin[index(id) + 1];
    return std::span{next_ops}.subspan(begin, end - begin);
  }

  std::vector<Worker> workers;
  std::vector<std::uint32_t> worker_of;   // by op
  std::vector<std::uint32_t> waits;       // by op: inputs, and the op before it on its stream
  std::vector<std::uint32_t> next_begin;  // who waits for op i: [next_begin[i], [i + 1])
  std::vector<OpId> next_ops;
};

}  // namespace rehearse
