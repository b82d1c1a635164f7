// The way to hwloc, which is in a module of its own.
#include "kernels/host/host_pin.hpp"

#include <sys/prctl.h>

#include "sim/base/module.hpp"

namespace rehearse {

void pin_to_processor(std::size_t rank, std::size_t ranks) {
  static const auto pin = module_function<decltype(rehearse_hwloc)>({"hwloc", "libhwloc-dev"});
  if (pin != nullptr) pin(rank, ranks);
}

void sharpen_timers() { ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

}  // namespace rehearse
