// What a process does while it waits for others and there is nothing to do. MPI makes progress only
// while it is called, so no wait may be long.
//
// Never sched_yield: with compilers beside two ranks on two processors, a message of 4 bytes took
// 2.9 ms that way and 0.1 ms with naps (Linux 6.18); it seems to give a whole slice away.
#pragma once

#include <chrono>

namespace rehearse {

class Rest {
 public:
  /// When processors are shared, by sleeping: the others need them.
  explicit Rest(bool shares_processors) : shares_{shares_processors} {}

  void after_work() { idle_ = 0; }
  void once();
  static void nap();

 private:
  bool shares_;
  int idle_ = 0;  // times in a row
};

}  // namespace rehearse
