// Races on emulated GPUs, found by the thread sanitizer: what nothing orders is reported in
// whatever order it happened to run, and what CUDA orders is not. Every other test of emulated_cuda
// runs in this program too, and fails when it has a race.
#include <cublas_v2.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>

#include "kernels/cuda/cuda_executor.hpp"
#include "kernels/cuda/cuda_handles.hpp"
#include "sim/program/kernel_list.hpp"
#include "tests/emulated_cuda/arrays.hpp"
#include "tests/emulated_cuda/broken_kernels.hpp"
#include "tests/emulated_cuda/races.hpp"

namespace {

int reports = 0;
constexpr int enough = 300;  // each takes a while to write, and one mistake makes millions of them

// A test that does not expect a race must have none.
class NoRaces : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { reports = 0; }
  void OnTestEnd(const ::testing::TestInfo&) override {
    if (reports > 0) ADD_FAILURE() << reports << " races; the sanitizer's report is above";
  }
};

}  // namespace

// The sanitizer calls them.
extern "C" void __tsan_on_report(void*) {
  if (++reports < enough) return;
  std::fprintf(stderr, "%d races in one test: that is enough\n", reports);
  std::_Exit(1);
}
extern "C" const char* __tsan_default_options() {
  return "exitcode=0:report_thread_leaks=0:suppress_equal_stacks=0:suppress_equal_addresses=0:"
         "history_size=1";
}

int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  ::testing::UnitTest::GetInstance()->listeners().Append(new NoRaces);
  return RUN_ALL_TESTS();
}

namespace rehearse {
namespace {

class Races : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    emulated_cuda::reset({.seed = GetParam()});
    CUDA_TRY(cudaSetDevice(0));
    first = make_stream(0);
    second = make_stream(0);
  }
  /// Whether there was a race since the last time it was asked.
  bool is_racing() {
    CUDA_TRY(cudaDeviceSynchronize());
    return std::exchange(reports, 0) > 0;
  }
  void order() {
    const EventHandle event = make_event(0, false);
    CUDA_TRY(cudaEventRecord(event.get(), first.get()));
    CUDA_TRY(cudaStreamWaitEvent(second.get(), event.get(), 0));
  }
  StreamHandle first, second;
};

TEST_P(Races, AMissingEvent) {
  const DeviceArray<float> x{Floats(8, 1.0F)}, y{8};
  for (const bool has_event : {true, false}) {
    CUDA_TRY(increment_with(Mistake::none, first.get(), x.data(), x.data(), 8));
    if (has_event) order();
    CUDA_TRY(increment_with(Mistake::none, second.get(), x.data(), y.data(), 8));
    EXPECT_NE(is_racing(), has_event);
  }
}

TEST_P(Races, AnEventRecordedTooEarly) {
  const DeviceArray<float> x{Floats(8, 1.0F)}, y{8};
  order();
  CUDA_TRY(increment_with(Mistake::none, first.get(), x.data(), x.data(), 8));
  CUDA_TRY(increment_with(Mistake::none, second.get(), x.data(), y.data(), 8));
  EXPECT_TRUE(is_racing());
}

TEST_P(Races, TwoReadersAreNone) {
  const DeviceArray<float> x{Floats(8, 1.0F)}, y{8}, z{8};
  CUDA_TRY(increment_with(Mistake::none, first.get(), x.data(), y.data(), 8));
  CUDA_TRY(increment_with(Mistake::none, second.get(), x.data(), z.data(), 8));
  EXPECT_FALSE(is_racing());
}

TEST_P(Races, AMissingBarrier) {
  const DeviceArray<float> x{Floats(300, 1.0F)}, total{1};
  for (const Mistake mistake : {Mistake::none, Mistake::no_barrier}) {
    CUDA_TRY(sum_with(mistake, first.get(), x.data(), 300, total.data()));
    EXPECT_EQ(is_racing(), mistake == Mistake::no_barrier);
  }
}

TEST_P(Races, LanesWithoutSyncwarp) {
  const DeviceArray<float> x{Floats(32, 1.0F)}, y{32};
  for (const Mistake mistake : {Mistake::none, Mistake::no_syncwarp}) {
    CUDA_TRY(turn_with(mistake, first.get(), x.data(), y.data()));
    EXPECT_EQ(is_racing(), mistake == Mistake::no_syncwarp);
  }
}

TEST_P(Races, BlocksThatAddUpWithoutAtomics) {
  const DeviceArray<unsigned> count{std::vector<unsigned>{0}};
  for (const Mistake mistake : {Mistake::none, Mistake::no_atomic}) {
    CUDA_TRY(count_with(mistake, first.get(), count.data()));
    EXPECT_EQ(is_racing(), mistake == Mistake::no_atomic);
  }
}

TEST_P(Races, TheHostDoesNotWaitForACopy) {
  const DeviceArray<float> x{Floats(8, 1.0F)};
  Floats here(8);
  for (const bool waits : {true, false}) {
    CUDA_TRY(cudaMemcpyAsync(here.data(), x.data(), 32, cudaMemcpyDeviceToHost, first.get()));
    if (waits) CUDA_TRY(cudaStreamSynchronize(first.get()));
    emulated_cuda::reads(here.data(), 32);
    EXPECT_NE(is_racing(), waits);
  }
}

TEST_P(Races, AProductWhoseFactorIsStillWritten) {
  const DeviceArray<float> a{Floats(16, 1.0F)}, b{Floats(16, 1.0F)}, c{16};
  const BlasHandle blas = make_blas(0);
  const float one = 1, none = 0;
  ASSERT_EQ(cublasSetStream_v2(blas.get(), second.get()), CUBLAS_STATUS_SUCCESS);
  for (const bool has_event : {true, false}) {
    CUDA_TRY(increment_with(Mistake::none, first.get(), a.data(), a.data(), 16));
    if (has_event) order();
    ASSERT_EQ(cublasGemmEx(blas.get(), CUBLAS_OP_N, CUBLAS_OP_T, 4, 4, 4, &one, a.data(),
                           CUDA_R_32F, 4, b.data(), CUDA_R_32F, 4, &none, c.data(), CUDA_R_32F, 4,
                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_NE(is_racing(), has_event);
  }
}

TEST_P(Races, ACollectiveOfNumbersThatAreStillWritten) {
  ncclComm_t comms[2] = {};
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
  CUDA_TRY(cudaSetDevice(1));
  const DeviceArray<float> there{Floats(8, 1.0F)};
  const StreamHandle other = make_stream(1);
  CUDA_TRY(cudaSetDevice(0));
  const DeviceArray<float> here{Floats(8, 1.0F)};
  for (const bool has_event : {true, false}) {
    CUDA_TRY(increment_with(Mistake::none, first.get(), here.data(), here.data(), 8));
    if (has_event) order();
    ASSERT_EQ(
        ncclAllReduce(here.data(), here.data(), 8, ncclFloat32, ncclSum, comms[0], second.get()),
        ncclSuccess);
    ASSERT_EQ(
        ncclAllReduce(there.data(), there.data(), 8, ncclFloat32, ncclSum, comms[1], other.get()),
        ncclSuccess);
    EXPECT_NE(is_racing(), has_event);
    CUDA_TRY(cudaStreamSynchronize(other.get()));
  }
  for (ncclComm_t comm : comms) ncclCommDestroy(comm);
}

// Two computes of one rank on two streams: the executor orders them by the edge, and by it alone.
TEST_P(Races, AProgramWithoutAnEdge) {
  for (const bool has_edge : {true, false}) {
    Program program;
    const Slice data{Buffer{0}, Bytes{0}, Bytes{32}};
    const KernelCall zero{.kernel = Kernel::zero, .operands = 1};
    const auto compute = [&](Stream stream, std::span<const OpId> after) {
      return program.add_compute(Rank{0}, stream, {program.name("zero")}, Compute{}, after,
                                 std::vector<Access>{{data, true}}, {&zero, 1});
    };
    const OpId one = compute(Stream::compute, {});
    compute(Stream::comm, has_edge ? std::span{&one, 1} : std::span<const OpId>{});
    const CudaMemory memory{program, {0}};
    CudaExecutor{memory}.run(program);
    EXPECT_NE(is_racing(), has_edge);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Races, ::testing::Range<std::uint64_t>(1, 4));

}  // namespace
}  // namespace rehearse
