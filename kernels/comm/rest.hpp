// What a process does while it waits for others and there is nothing to do. MPI makes progress only
// while it is called, so no wait may be long.
//
// Never sched_yield: since Linux 6.6 it gives away a whole slice of 3 ms to whoever else can run,
// and with a compiler beside them, or eight ranks on two processors, messages of 0.1 ms took 3 ms,
// and a tree, whose inner ranks wait for several, four times as long as a ring.
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
