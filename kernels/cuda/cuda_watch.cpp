// Patience counts while this process runs: one that was stopped for a while has not waited.
#include "kernels/cuda/cuda_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "sim/base/error.hpp"

namespace rehearse {

CudaWatch::CudaWatch(const Program& program, const CudaOptions& options, const CudaEvents& events,
                     const CudaCommunicators& communicators)
    : program_{program}, options_{options}, events_{events}, communicators_{communicators} {}

void CudaWatch::restart() {
  asked_ = Clock::now();
  waited_ = {};
  turns_ = ended_ = 0;
}

bool CudaWatch::is_patient() {
  constexpr Clock::duration most = std::chrono::milliseconds{100};
  if (options_.processes) options_.processes->look();
  communicators_.check();
  if (options_.stop && options_.stop()) throw DeviceError("stopped before the end");
  const Clock::time_point now = Clock::now();
  waited_ += std::min(now - asked_, most);
  asked_ = now;
  // NCCL has threads of its own; but on a busy machine each turn given away is milliseconds.
  if (++turns_ % 64 == 0) std::this_thread::yield();
  if (waited_ <= options_.patience) return true;
  waited_ = {};
  return false;
}

void CudaWatch::wait_for(OpId id) {
  if (is_patient()) return;
  const std::size_t now = events_.count_over();
  if (now <= std::exchange(ended_, now))
    throw DeviceError(fmt::format("{} has not ended, and nothing else has for {} ms",
                                  program_.describe(id), options_.patience.count()));
}

}  // namespace rehearse
