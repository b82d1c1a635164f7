// What the emulated machine tells of its work to who listens: a library that stands in for CUPTI's
// (plugins/fake_cupti.cpp) finds these functions in the program that loaded it.
#pragma once

#include <cstdint>

namespace emulated_cuda {

struct ActivityListener {
  /// On the thread of the call that puts it on a stream; `what` are the words of complaints.
  void (*submitted)(std::uint64_t number, const char* what) = nullptr;
  void (*ran)(std::uint64_t number, int device, std::uint64_t begin, std::uint64_t end) = nullptr;
};

}  // namespace emulated_cuda

extern "C" {
/// One listener or (null) none.
void emulated_cuda_listen(const emulated_cuda::ActivityListener* listener);
std::uint64_t emulated_cuda_clock();
}
