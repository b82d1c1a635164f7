// Graphs made by hand: they run as often as launched, in an order that their edges allow; what CUDA
// does not allow while one is made is caught.
#include "kernels/math/cuda_kernels.hpp"
#include "tests/emulated_cuda/arrays.hpp"

namespace rehearse::making_graphs_test {
namespace {

/// Streams of two devices and events, to make graphs by hand.
class MakingGraphs : public testing::Test {
 protected:
  void SetUp() override { begin(1); }
  void TearDown() override { finish(); }
  void begin(std::uint64_t seed) {
    emulated_cuda::reset({.devices = 2, .seed = seed});
    for (auto& stream : streams)
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    for (auto& event : events)
      ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  }
  void finish() {
    for (const auto event : events) cudaEventDestroy(event);
    for (const auto stream : streams) cudaStreamDestroy(stream);
    EXPECT_EQ(emulated_cuda::leaks(), "");
  }
  void begin_capture() {
    ASSERT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  void fork() {
    ASSERT_EQ(cudaEventRecord(events[0], streams[0]), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(streams[1], events[0], 0), cudaSuccess);
  }
  void join() {
    ASSERT_EQ(cudaEventRecord(events[1], streams[1]), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(streams[0], events[1], 0), cudaSuccess);
  }
  cudaError_t end_capture() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(streams[0], &graph);
    EXPECT_EQ(graph == nullptr, error != cudaSuccess);
    if (graph != nullptr) cudaGraphDestroy(graph);
    return error;
  }
  // x = 1 on one stream, y = x + x on the other; with or without the edge between them.
  float sum_by_graph(std::uint64_t seed, bool has_edge) {
    finish();
    begin(seed);
    float result = 0;
    {
      const DeviceArray<float> x{std::vector<float>{0}}, one{std::vector<float>{1}}, y{1};
      begin_capture();
      if (!has_edge) fork();
      add_into(streams[0], one, x);
      if (has_edge) fork();
      add(streams[1], x, x, y);
      join();
      cudaGraph_t graph = nullptr;
      EXPECT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
      cudaGraphExec_t run = nullptr;
      EXPECT_EQ(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
      // Nothing has run yet.
      EXPECT_EQ(x.values()[0], 0);
      for (int i = 0; i < 2; ++i) EXPECT_EQ(cudaGraphLaunch(run, streams[0]), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
      result = y.values()[0];
      EXPECT_EQ(x.values()[0], 2);
      cudaGraphExecDestroy(run);
      cudaGraphDestroy(graph);
    }
    return result;
  }

  cudaStream_t streams[2] = {};
  cudaEvent_t events[2] = {};
};

TEST_F(MakingGraphs, RunsAsOftenAsLaunched) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(sum_by_graph(seed, true), 4);
}

TEST_F(MakingGraphs, AMissingEdgeShowsUnderSomeSeed) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) wrong += sum_by_graph(seed, false) != 4 ? 1 : 0;
  EXPECT_GT(wrong, 0);
}

TEST_F(MakingGraphs, AForkThatDoesNotComeBack) {
  const DeviceArray<float> x{4};
  begin_capture();
  fork();
  scale(streams[1], x, 2.0F, x);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureUnjoined);
}

TEST_F(MakingGraphs, WaitingForWhatOnlyGetsRecorded) {
  begin_capture();
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
  begin_capture();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
  begin_capture();
  fork();
  EXPECT_EQ(cudaEventQuery(events[0]), cudaErrorCapturedEvent);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(MakingGraphs, AllocatingInBetween) {
  begin_capture();
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(MakingGraphs, AnEventFromOutside) {
  ASSERT_EQ(cudaEventRecord(events[0], streams[1]), cudaSuccess);
  begin_capture();
  EXPECT_EQ(cudaStreamWaitEvent(streams[0], events[0], 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(MakingGraphs, EndingOnAnotherStream) {
  begin_capture();
  fork();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(streams[1], &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
}

}  // namespace
}  // namespace rehearse::making_graphs_test
