// The kernels' tests on a real GPU: the same files as on emulated ones. Without a GPU one line, and
// exit code 77, which CTest calls skipped.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    std::printf("skipped: no usable GPU: %s\n", cudaGetErrorString(error));
    return 77;
  }
  return RUN_ALL_TESTS();
}
