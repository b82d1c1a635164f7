// What goes wrong on a device, in NCCL or on another rank becomes one DeviceError with one line
// (exit code 3), soon, and everything that was made is destroyed.
#include "kernels/cuda/cuda_executor.hpp"

#include <gtest/gtest.h>

#include "kernels/cuda/cuda_handles.hpp"
#include "sim/base/error.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/support/random_program.hpp"

namespace rehearse::faults_test {
namespace {

constexpr std::int64_t bytes = 400;
constexpr Slice data{Buffer{0}, Bytes{0}, Bytes{bytes}};

// Rank 0 adds its numbers to rank 1's: one kernel.
Program sum_program() {
  Program program;
  const ConnectionId way = program.connect({.source = Rank{0}, .target = Rank{1}});
  Transfer work;
  work.connection = way;
  work.combine = Combine::sum;
  work.size = work.wire = Bytes{bytes};
  program.add_transfer(Stream::comm, {program.name("sum")}, work, {});
  return program;
}

Program all_reduce_program() {
  Program program;
  Collective work;
  work.group = {Rank{0}, Rank{1}};
  work.data = data;
  program.add_collective(Stream::comm, {program.name("all_reduce")}, work, {});
  return program;
}

std::string message_of(const emulated_cuda::Options& options, const Program& program,
                       const std::vector<int>& node_of = {}) {
  emulated_cuda::reset(options);
  std::string message = "nothing was thrown";
  try {
    const CudaMemory memory{program, {0, 1}};
    CudaExecutor{memory, {.node_of = node_of, .patience = std::chrono::milliseconds{200}}}.run(
        program);
  } catch (const DeviceError& error) {
    message = error.what();
  }
  EXPECT_EQ(emulated_cuda::leaks(), "");
  EXPECT_EQ(message.find('\n'), message.npos);
  return message;
}

TEST(CudaFaults, OutOfMemory) {
  EXPECT_EQ(message_of({.memory = 300}, sum_program()),
            "device 0: cannot have 512 bytes: out of memory");
}

TEST(CudaFaults, AFailingKernel) {
  EXPECT_EQ(message_of({.faults = {.failing_launch = 1}}, sum_program()),
            "op 0 'sum' (rank 0, comm 0): cudaErrorLaunchFailure");
}

TEST(CudaFaults, AnErrorInsideOfNccl) {
  EXPECT_EQ(message_of({.faults = {.nccl_error = 2}}, all_reduce_program()),
            "NCCL on rank 1: unhandled system error");
}

TEST(CudaFaults, AVanishedRank) {
  const std::string words = ": remote process exited or there was a network error";
  EXPECT_EQ(message_of({.faults = {.vanished_device = 1}}, all_reduce_program()),
            "NCCL on rank 0" + words);
  EXPECT_EQ(message_of({.faults = {.vanished_device = 1}}, sum_program(), {0, 1}),
            "NCCL on rank 0" + words);
}

TEST(CudaFaults, ARankThatShouldHaveADeviceOfItsOwn) {
  emulated_cuda::reset({});
  const Program program = all_reduce_program();
  const CudaMemory memory{program, {0, 0}};
  EXPECT_THROW(CudaExecutor{memory}.run(program), DeviceError);
}

TEST(CudaFaults, NoDevice) {
  emulated_cuda::reset({.devices = 0});
  EXPECT_THROW(device_count(), NothingToRunOn);
}

TEST(CudaFaults, NothingIsWrongWithoutAFault) {
  EXPECT_EQ(message_of({}, sum_program()), "nothing was thrown");
  EXPECT_EQ(message_of({}, all_reduce_program()), "nothing was thrown");
  EXPECT_EQ(message_of({}, sum_program(), {0, 1}), "nothing was thrown");
  EXPECT_TRUE(emulated_cuda::complaints().empty());
}

}  // namespace
}  // namespace rehearse::faults_test
