// Ctrl-C while something long runs: noted, so that it can end in order.
#pragma once

namespace rehearse {

/// While one is alive, SIGINT and SIGTERM only set a flag; and SIGUSR1, which mpirun hands on to
/// its processes.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  bool was_interrupted() const;

 private:
  void (*interrupt_before_)(int);
  void (*terminate_before_)(int);
  void (*user_before_)(int);
};

}  // namespace rehearse
