// A handler may set a flag and little else.
#include "tools/measure/interrupt.hpp"

#include <csignal>

namespace rehearse {

namespace {

volatile std::sig_atomic_t interrupted = 0;
void note(int) { interrupted = 1; }

}  // namespace

InterruptGuard::InterruptGuard()
    : interrupt_before_{std::signal(SIGINT, note)},
      terminate_before_{std::signal(SIGTERM, note)},
      user_before_{std::signal(SIGUSR1, note)} {}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, interrupt_before_);
  std::signal(SIGTERM, terminate_before_);
  std::signal(SIGUSR1, user_before_);
}

bool InterruptGuard::was_interrupted() const { return interrupted != 0; }

}  // namespace rehearse
