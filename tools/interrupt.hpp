// Ctrl-C while something long runs: noted, so that it can end in order.
#pragma once

namespace rehearse {

/// While one is alive, SIGINT and SIGTERM only set a flag.
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
};

}  // namespace rehearse
