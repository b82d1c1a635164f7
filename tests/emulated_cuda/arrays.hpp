// What tests of kernels on devices share: a machine for each test, and arrays on its devices. The
// same tests run on emulated devices and, where there are some, on real ones.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <span>
#include <utility>
#include <vector>

#include "kernels/math/cuda_try.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/kernels/numbers.hpp"

namespace rehearse {

/// Numbers on the current device; `shift` elements behind what CUDA aligns, for odd addresses.
template <class Number>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, std::size_t shift = 0) : count_{count}, shift_{shift} {
    CUDA_TRY(cudaMalloc(&memory_, (count + shift + 1) * sizeof(Number)));
  }
  explicit DeviceArray(const std::vector<Number>& values, std::size_t shift = 0)
      : DeviceArray(values.size(), shift) {
    CUDA_TRY(
        cudaMemcpy(data(), values.data(), values.size() * sizeof(Number), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(memory_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  Number* data() const { return static_cast<Number*>(memory_) + shift_; }
  std::span<Number> span() const { return {data(), count_}; }
  operator std::span<Number>() const { return span(); }
  operator std::span<const Number>() const { return span(); }

  /// What is there when all work of the device is done.
  std::vector<Number> values() const {
    std::vector<Number> result(count_);
    CUDA_TRY(cudaDeviceSynchronize());
    CUDA_TRY(cudaMemcpy(result.data(), data(), count_ * sizeof(Number), cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  void* memory_ = nullptr;
  std::size_t count_, shift_;
};

/// A stream on the first device. An emulated machine is a new one for each test, and must have
/// nothing to complain about and nothing left over.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef REHEARSE_EMULATED_CUDA
    emulated_cuda::reset({});
#endif
    CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
#ifdef REHEARSE_EMULATED_CUDA
    EXPECT_EQ(emulated_cuda::complaints(), std::vector<std::string>{});
    EXPECT_EQ(emulated_cuda::leaks(), "");
#endif
  }
  cudaStream_t stream = nullptr;
};

}  // namespace rehearse
