// Programs with one mistake each, and what the emulated machine makes of it: a complaint, the error
// that a real device gives, or a number that cannot be right. A guard that never barks guards
// nothing.
#include <nccl.h>

#include <thread>

#include "tests/emulated_cuda/arrays.hpp"
#include "tests/emulated_cuda/broken_kernels.hpp"

namespace rehearse::broken_test {
namespace {

using emulated_cuda::complaints;

class Broken : public ::testing::Test {
 protected:
  void begin(std::uint64_t seed = 1) {
    emulated_cuda::reset({.seed = seed});
    CUDA_TRY(cudaSetDevice(0));
    CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void SetUp() override { begin(); }

  /// The next wait gives this error, and the machine has said so.
  void expect_caught(cudaError_t error, const std::string& words) {
    EXPECT_EQ(cudaStreamSynchronize(stream), error);
    ASSERT_EQ(complaints().size(), 1U);
    EXPECT_NE(complaints()[0].find(words), std::string::npos) << complaints()[0];
  }
  void expect_sum_caught(Mistake mistake, const std::string& words) {
    const DeviceArray<float> x{Floats(300, 1.0F)}, total{1};
    ASSERT_EQ(sum_with(mistake, stream, x.data(), 300, total.data()), cudaSuccess);
    expect_caught(cudaErrorLaunchFailure, words);
  }
  cudaStream_t stream = nullptr;
};

// The address sanitizer sees it first, and ends the program.
#ifdef __SANITIZE_ADDRESS__
#define EXPECT_SEEN(statement, expectation) EXPECT_DEATH(statement, "use-after-poison")
#else
#define EXPECT_SEEN(statement, expectation) \
  do {                                      \
    statement;                              \
    expectation;                            \
  } while (false)
#endif

TEST_F(Broken, NothingIsWrongWithoutAMistake) {
  const DeviceArray<float> x{Floats(300, 1.0F)}, total{1};
  ASSERT_EQ(sum_with(Mistake::none, stream, x.data(), 300, total.data()), cudaSuccess);
  EXPECT_EQ(total.values()[0], 300);
  ASSERT_EQ(increment_with(Mistake::none, stream, total.data(), total.data(), 1), cudaSuccess);
  EXPECT_EQ(total.values()[0], 301);
  EXPECT_TRUE(complaints().empty());
}

TEST_F(Broken, AMissingBarrierGivesAWrongSumUnderSomeSeed) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    begin(seed);
    const DeviceArray<float> x{Floats(300, 1.0F)}, total{1};
    ASSERT_EQ(sum_with(Mistake::no_barrier, stream, x.data(), 300, total.data()), cudaSuccess);
    wrong += total.values()[0] != 300 ? 1 : 0;
  }
  EXPECT_GT(wrong, 0);
}

TEST_F(Broken, BarriersOnDifferentLines) {
  expect_sum_caught(Mistake::divergent_barrier, "different barriers");
}
TEST_F(Broken, ThreadsThatLeaveBeforeTheBarrier) {
  expect_sum_caught(Mistake::early_return, "64 of 128 threads, the others have left");
}
TEST_F(Broken, ThreadsThatPassMoreBarriersThanOthers) {
  expect_sum_caught(Mistake::unequal_loops, "barrier");
}
TEST_F(Broken, ALaneThatNeverComesToTheShuffle) {
  expect_sum_caught(Mistake::missing_lane, "hangs");
}
TEST_F(Broken, LanesWithDifferentMasks) { expect_sum_caught(Mistake::wrong_mask, "mask"); }

TEST_F(Broken, AWriteBehindTheEnd) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 40), cudaSuccess);
  auto* x = static_cast<float*>(memory);
  EXPECT_SEEN(
      {
        ASSERT_EQ(increment_with(Mistake::write_behind, stream, x, x, 10), cudaSuccess);
        cudaStreamSynchronize(stream);
      },
      expect_caught(cudaErrorIllegalAddress, "behind an allocation of 40 bytes"));
}

TEST_F(Broken, AWriteBeforeTheBegin) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 40), cudaSuccess);
  auto* x = static_cast<float*>(memory);
  EXPECT_SEEN(
      {
        ASSERT_EQ(increment_with(Mistake::write_before, stream, x, x, 10), cudaSuccess);
        cudaStreamSynchronize(stream);
      },
      expect_caught(cudaErrorIllegalAddress, "before an allocation of 40 bytes"));
}

TEST_F(Broken, AReadBehindTheEndIsNoNumber) {
  void *x = nullptr, *y = nullptr;
  ASSERT_EQ(cudaMalloc(&x, 40), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&y, 44), cudaSuccess);
  float last = 0;
  EXPECT_SEEN(
      {
        ASSERT_EQ(increment_with(Mistake::none, stream, static_cast<float*>(x),
                                 static_cast<float*>(y), 11),
                  cudaSuccess);
        cudaStreamSynchronize(stream);
        ASSERT_EQ(cudaMemcpy(&last, static_cast<float*>(y) + 10, 4, cudaMemcpyDeviceToHost),
                  cudaSuccess);
      },
      EXPECT_TRUE(std::isnan(last)));
}

TEST_F(Broken, MemoryThatNobodyWroteIsNoNumber) {
  const DeviceArray<float> x{4};
  for (const float value : x.values()) EXPECT_TRUE(std::isnan(value));
}

TEST_F(Broken, AKernelWithHostMemory) {
  float on_host[4] = {};
  ASSERT_EQ(increment_with(Mistake::none, stream, on_host, on_host, 4), cudaSuccess);
  expect_caught(cudaErrorIllegalAddress, "memory of the host");
}

TEST_F(Broken, APeerThatWasNotEnabled) {
  CUDA_TRY(cudaSetDevice(1));
  const DeviceArray<float> there{Floats(4, 1.0F)};
  CUDA_TRY(cudaSetDevice(0));
  ASSERT_EQ(increment_with(Mistake::none, stream, there.data(), there.data(), 4), cudaSuccess);
  expect_caught(cudaErrorIllegalAddress, "without peer access");
}

TEST_F(Broken, APeerHiddenInAStructure) {
  CUDA_TRY(cudaSetDevice(1));
  const DeviceArray<float> there{Floats(4, 1.0F)};
  CUDA_TRY(cudaSetDevice(0));
  ASSERT_EQ(increment_with(Mistake::hidden_pointer, stream, there.data(), there.data(), 4),
            cudaSuccess);
  expect_caught(cudaErrorIllegalAddress, "touches an allocation");
}

TEST_F(Broken, APeerThatWasEnabledIsNoMistake) {
  CUDA_TRY(cudaSetDevice(1));
  const DeviceArray<float> there{Floats(4, 1.0F)};
  CUDA_TRY(cudaSetDevice(0));
  CUDA_TRY(cudaDeviceEnablePeerAccess(1, 0));
  for (const Mistake way : {Mistake::none, Mistake::hidden_pointer})
    ASSERT_EQ(increment_with(way, stream, there.data(), there.data(), 4), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  CUDA_TRY(cudaSetDevice(1));
  EXPECT_EQ(there.values(), Floats(4, 3.0F));
}

TEST_F(Broken, AKernelOnAStreamOfAnotherDevice) {
  CUDA_TRY(cudaSetDevice(1));
  const DeviceArray<float> there{4};
  EXPECT_EQ(increment_with(Mistake::none, stream, there.data(), there.data(), 4),
            cudaErrorInvalidResourceHandle);
}

TEST_F(Broken, AnEventOfAnotherDevice) {
  CUDA_TRY(cudaSetDevice(1));
  cudaEvent_t event = nullptr;
  CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
}

TEST_F(Broken, AKernelAfterFree) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 40), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  auto* x = static_cast<float*>(memory);
  ASSERT_EQ(increment_with(Mistake::none, stream, x, x, 10), cudaSuccess);
  expect_caught(cudaErrorIllegalAddress, "freed memory");
}

TEST_F(Broken, MemoryFreedTwice) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 40), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
}

TEST_F(Broken, ACopyInTheWrongDirectionOrTooLong) {
  float on_host[16] = {};
  const DeviceArray<float> there{4};
  EXPECT_EQ(cudaMemcpyAsync(there.data(), on_host, 16, cudaMemcpyDeviceToHost, stream),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(there.data(), on_host, 64, cudaMemcpyHostToDevice, stream),
            cudaErrorInvalidValue);
}

TEST_F(Broken, SharedMemoryThatWasNotAskedFor) {
  EXPECT_EQ(use_shared(stream, 48 << 10), cudaSuccess);
  EXPECT_EQ(use_shared(stream, (48 << 10) + 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST_F(Broken, TheHostReadsDeviceMemory) {
  const DeviceArray<float> there{Floats(4, 1.0F)};
  EXPECT_DEATH(std::printf("%f\n", static_cast<double>(there.data()[0])),
               "the host touches an allocation|AddressSanitizer");
}

// One stream writes, another reads: with the event in order, without it under some seed not.
float read_through_other_stream(cudaStream_t first, bool with_event) {
  cudaStream_t second = nullptr;
  cudaEvent_t event = nullptr;
  CUDA_TRY(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const DeviceArray<float> x{Floats{1}}, y{Floats{0}};
  CUDA_TRY(increment_with(Mistake::none, first, x.data(), x.data(), 1));
  CUDA_TRY(cudaEventRecord(event, first));
  if (with_event) CUDA_TRY(cudaStreamWaitEvent(second, event, 0));
  CUDA_TRY(increment_with(Mistake::none, second, x.data(), y.data(), 1));
  return y.values()[0];
}

TEST_F(Broken, AMissingEventShowsUnderSomeSeed) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    begin(seed);
    EXPECT_EQ(read_through_other_stream(stream, true), 3);
    wrong += read_through_other_stream(stream, false) != 3 ? 1 : 0;
  }
  EXPECT_GT(wrong, 0);
}

TEST_F(Broken, AResultThatNobodyWaitedFor) {
  const DeviceArray<float> x{Floats{1}};
  float on_host = 0;
  CUDA_TRY(increment_with(Mistake::none, stream, x.data(), x.data(), 1));
  CUDA_TRY(cudaMemcpyAsync(&on_host, x.data(), 4, cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(on_host, 0);  // work runs as late as allowed
  CUDA_TRY(cudaStreamSynchronize(stream));
  EXPECT_EQ(on_host, 2);
}

TEST_F(Broken, WhatIsLeftOverIsNamed) {
  const DeviceArray<float> x{1};
  EXPECT_EQ(emulated_cuda::leaks(), "1 streams, 1 allocations");
}

TEST_F(Broken, MoreMemoryThanThereIs) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 1 << 30), cudaErrorMemoryAllocation);
}

// Two ranks of one communicator, on two devices.
class BrokenCollective : public Broken {
 protected:
  void SetUp() override {
    begin();
    ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
    for (int device = 0; device < 2; ++device) {
      CUDA_TRY(cudaSetDevice(device));
      CUDA_TRY(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
      CUDA_TRY(cudaMalloc(&x[device], 40));
    }
    stream = streams[0];
  }
  ncclResult_t all_reduce(int rank, std::size_t count) {
    return ncclAllReduce(x[rank], x[rank], count, ncclFloat32, ncclSum, comms[rank], streams[rank]);
  }
  ncclComm_t comms[2] = {};
  cudaStream_t streams[2] = {};
  void* x[2] = {};
};

TEST_F(BrokenCollective, ARankIsMissing) {
  ASSERT_EQ(all_reduce(0, 10), ncclSuccess);
  expect_caught(cudaErrorLaunchTimeout, "ncclAllReduce of rank 0, waiting for the others");
}

TEST_F(BrokenCollective, CountsDiffer) {
  ASSERT_EQ(all_reduce(0, 10), ncclSuccess);
  ASSERT_EQ(all_reduce(1, 9), ncclSuccess);
  expect_caught(cudaErrorLaunchFailure, "ranks disagree, 10 and 9 numbers");
}

TEST_F(BrokenCollective, ABufferOfAnotherDeviceOrTooShort) {
  EXPECT_EQ(ncclAllReduce(x[1], x[1], 10, ncclFloat32, ncclSum, comms[0], streams[0]),
            ncclInvalidArgument);
  EXPECT_EQ(all_reduce(0, 11), ncclInvalidArgument);
}

TEST_F(BrokenCollective, SendsInTheWrongOrderWait) {
  // Rank 0 first sends, rank 1 first sends: without a group nobody receives.
  for (const int rank : {0, 1}) {
    ASSERT_EQ(ncclSend(x[rank], 4, ncclFloat32, 1 - rank, comms[rank], streams[rank]), ncclSuccess);
    ASSERT_EQ(ncclRecv(x[rank], 4, ncclFloat32, 1 - rank, comms[rank], streams[rank]), ncclSuccess);
  }
  expect_caught(cudaErrorLaunchTimeout, "would wait forever");
}

}  // namespace
}  // namespace rehearse::broken_test
