// A kernel that does nothing for a given number of clock cycles, on one multiprocessor: for
// calibration (what a launch costs, what runs beside what) and for tests of waiting.
#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"

namespace rehearse {

namespace {

__global__ void spin_kernel(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

}  // namespace

void spin(DeviceStream stream, std::int64_t cycles) {
  launch(stream, {dim3{1}, dim3{1}}, spin_kernel, cycles);
}

}  // namespace rehearse
