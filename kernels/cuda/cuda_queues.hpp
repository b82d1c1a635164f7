// Queues on GPUs: first come, first served. A CUDA stream runs what was put on it first, so that
// who comes first is the host's to see: it asks for the events of what a queue's ops wait for, and
// puts an op on its queue's stream once they are over.
//
//   worker 0  ──[push]──────────────●             ● asked by the host, which puts the serve behind
//   worker 1  ──[push]─────●         ╲              what it put there before
//   queue     ──────────────[serve 1]─[serve 0]──▶
//
// Every other op is put on its stream as soon as all that it waits for has been: events order the
// rest. Rejected: waiting on the device by a value in memory (cuStreamWaitValue): it can wait for
// one push, not for whichever comes first.
#pragma once

#include <functional>
#include <vector>

#include "kernels/cuda/cuda_events.hpp"

namespace rehearse {

/// Calls `start` for every op, as soon as it may be put on its streams, and `wait` with one that
/// may not yet where there is nothing else to do. Returns the ops of queues in the order of their
/// service.
std::vector<OpId> start_as_served(const Program& program, const StreamTable& streams,
                                  const CudaEvents& events, const std::function<void(OpId)>& start,
                                  const std::function<void(OpId)>& wait);

/// Events tell time in steps of half a microsecond: two ops of a queue may begin in the same one.
void keep_served_order(const Program& program, const std::vector<OpId>& served, Timeline& timeline);

}  // namespace rehearse
