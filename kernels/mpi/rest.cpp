// Awake for a while where that harms nobody, then asleep for moments.
#include "kernels/mpi/rest.hpp"

#include <thread>

namespace rehearse {

void Rest::nap() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

void Rest::once() {
  // Each time the caller asks MPI, some hundred nanoseconds: a millisecond or so.
  constexpr int awake = 5000;
  // With naps of 20 us, eight ranks on two processors spread by up to 179 % from run to run; with
  // 50 and 100 us by some percent. It seems that they left too little for the network itself.
  if (shares_) return std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (idle_ >= awake) return nap();
  ++idle_;
  __builtin_ia32_pause();
}

}  // namespace rehearse
