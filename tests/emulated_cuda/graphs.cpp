// Making graphs, and running them.
#include "tests/emulated_cuda/graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

struct CUgraph_st {
  std::vector<emulated_cuda::GraphNode> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<emulated_cuda::GraphNode>> nodes;
};

namespace emulated_cuda {

namespace {

std::uint64_t run_number = 0;

/// One launch of a graph: nodes come up as what they wait for is done.
struct GraphRun {
  std::uint64_t number = 0;
  std::shared_ptr<const std::vector<GraphNode>> nodes;
  std::vector<std::size_t> missing;
  std::vector<std::vector<std::size_t>> next;
  std::size_t left = 0;
  Token begun;
  std::vector<Token> done;  // by node
};

// By reference: a copy would be memory that nothing orders before the threads that read it.
template <class Function>
auto in_run(const GraphRun& run, const Function& function) {
  struct Number {
    explicit Number(std::uint64_t number) : before{std::exchange(run_number, number)} {}
    ~Number() { run_number = before; }
    std::uint64_t before;
  };
  const Number number{run.number};
  return function();
}

// A stream of its own for each node, so that whoever is ready may be next.
void come_up(const std::shared_ptr<GraphRun>& run, std::size_t i) {
  const GraphNode& node = (*run->nodes)[i];
  auto* stream = new CUstream_st;
  stream->device = node.device;
  stream->is_node = true;
  state().streams.push_back(stream);
  std::function<bool()> is_ready;
  if (node.is_ready) is_ready = [run, &node] { return in_run(*run, node.is_ready); };
  submit(
      *stream, node.what + " of a graph",
      [run, i, &node] {
        {
          const As turn{node.stream->actor};
          acquire(run->begun.place());
          for (const std::size_t before : node.after) acquire(run->done[before].place());
        }
        if (node.run) in_run(*run, node.run);
        {
          const As turn{node.stream->actor};
          release(run->done[i].place());
          release(state().nodes_done[static_cast<std::size_t>(node.device)].place());
        }
        --run->left;
        for (const std::size_t next : run->next[i])
          if (--run->missing[next] == 0) come_up(run, next);
      },
      std::move(is_ready));
}

std::vector<std::size_t> together(const std::vector<std::size_t>& a,
                                  const std::vector<std::size_t>& b) {
  std::set<std::size_t> all{a.begin(), a.end()};
  all.insert(b.begin(), b.end());
  return {all.begin(), all.end()};
}

void end(Capture& capture) {
  capture.is_over = true;
  for (CUstream_st* stream : std::exchange(capture.streams, {})) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
}

// Every stream's last nodes must be among what the origin waits for.
bool is_joined(const Capture& capture) {
  std::vector<bool> is_reached(capture.nodes.size());
  std::vector<std::size_t> stack = capture.origin->tail;
  while (!stack.empty()) {
    const std::size_t i = stack.back();
    stack.pop_back();
    if (is_reached[i]) continue;
    is_reached[i] = true;
    stack.insert(stack.end(), capture.nodes[i].after.begin(), capture.nodes[i].after.end());
  }
  return std::ranges::all_of(is_reached, std::identity{});
}

bool makes_graph_here(const CUstream_st* stream) {
  return stream->capture != nullptr && stream->capture->mode != cudaStreamCaptureModeRelaxed &&
         (stream->capture->mode == cudaStreamCaptureModeGlobal ||
          stream->capture->thread == std::this_thread::get_id());
}

}  // namespace

std::uint64_t graph_run_number() { return run_number; }

void add_node(CUstream_st& stream, std::string what, std::function<void()> run,
              std::function<bool()> is_ready) {
  std::vector<GraphNode>& nodes = stream.capture->nodes;
  nodes.push_back({stream.device, &stream, std::move(what), std::move(run), std::move(is_ready),
                   std::exchange(stream.tail, {})});
  stream.tail = {nodes.size() - 1};
}

cudaError_t record_edge(CUevent_st& event, CUstream_st& stream) {
  event.recording = nullptr;
  event.capture = stream.capture;
  event.nodes = stream.tail;
  return cudaSuccess;
}

cudaError_t wait_for_edge(CUstream_st& stream, const CUevent_st& event) {
  if (event.capture->is_over) return result(cudaErrorCapturedEvent);
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    event.capture->streams.push_back(&stream);
  }
  if (stream.capture != event.capture) {
    break_capture(*event.capture, cudaErrorStreamCaptureMerge, "two graphs would be one");
    return break_capture(*stream.capture, cudaErrorStreamCaptureMerge, "two graphs would be one");
  }
  stream.tail = together(stream.tail, event.nodes);
  return cudaSuccess;
}

cudaError_t break_capture(Capture& capture, cudaError_t error, const std::string& why) {
  complain(why);
  capture.is_broken = true;
  return result(error);
}

cudaError_t refuse_while_capturing(const CUstream_st* stream, const char* call) {
  const std::lock_guard guard{lock()};
  if (stream == nullptr) {
    const auto at = std::ranges::find_if(state().streams, makes_graph_here);
    if (at == state().streams.end()) return cudaSuccess;
    stream = *at;
  }
  if (stream->capture == nullptr) return cudaSuccess;
  return break_capture(*stream->capture, cudaErrorStreamCaptureUnsupported,
                       fmt::format("{} while a graph is made", call));
}

cudaError_t refuse_edge(const CUevent_st& event, const char* call) {
  const std::lock_guard guard{lock()};
  if (event.capture == nullptr) return cudaSuccess;
  return break_capture(*event.capture, cudaErrorCapturedEvent,
                       fmt::format("{} of an event that is an edge of a graph", call));
}

void leave_capture(CUstream_st& stream) {
  const std::lock_guard guard{lock()};
  if (stream.capture == nullptr) return;
  break_capture(*stream.capture, cudaErrorStreamCaptureUnsupported,
                "a stream is destroyed while a graph is made of it");
  std::erase(stream.capture->streams, &stream);
  stream.capture = nullptr;
}

}  // namespace emulated_cuda

using namespace emulated_cuda;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard guard{lock()};
  CUstream_st& on = *resolve(stream);
  if (stream == nullptr || stream == cudaStreamLegacy)
    return result(cudaErrorStreamCaptureUnsupported);
  if (on.capture != nullptr) return result(cudaErrorIllegalState);
  on.capture = std::make_shared<Capture>();
  on.capture->origin = &on;
  on.capture->mode = mode;
  on.capture->streams = {&on};
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard guard{lock()};
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = resolve(stream)->capture;
  if (capture == nullptr) return result(cudaErrorIllegalState);
  if (capture->origin != stream)
    return break_capture(*capture, cudaErrorStreamCaptureUnmatched,
                         "a graph ends on another stream than it began");
  const bool is_whole = is_joined(*capture);
  end(*capture);
  if (capture->is_broken) return result(cudaErrorStreamCaptureInvalidated);
  if (!is_whole) {
    complain("a graph ends before all of its streams have come back");
    return result(cudaErrorStreamCaptureUnjoined);
  }
  *graph = new CUgraph_st{capture->nodes};
  state().other_handles.insert(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* run, cudaGraph_t graph, unsigned long long) {
  const std::lock_guard guard{lock()};
  *run = new CUgraphExec_st{std::make_shared<const std::vector<GraphNode>>(graph->nodes)};
  state().other_handles.insert(*run);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::lock_guard guard{lock()};
  if (state().other_handles.erase(graph) == 0) return result(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t run) {
  const std::lock_guard guard{lock()};
  if (state().other_handles.erase(run) == 0) return result(cudaErrorInvalidValue);
  delete run;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t what, cudaStream_t stream) {
  const std::lock_guard guard{lock()};
  static std::uint64_t launches = 0;
  if (state().failure != cudaSuccess) return result(state().failure);
  if (!state().other_handles.contains(what)) return result(cudaErrorInvalidValue);
  const auto run = std::make_shared<GraphRun>();
  run->number = ++launches;
  run->nodes = what->nodes;
  run->left = run->nodes->size();
  run->next.resize(run->left);
  run->done.resize(run->left);
  for (std::size_t i = 0; i < run->nodes->size(); ++i) {
    const GraphNode& node = (*run->nodes)[i];
    run->missing.push_back(node.after.size());
    for (const std::size_t before : node.after) run->next[before].push_back(i);
  }
  CUstream_st& on = *resolve(stream);
  submit(on, "the begin of a graph", [run, &on] {
    {
      const As turn{on.actor};
      release(run->begun.place());
    }
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < run->missing.size(); ++i)
      if (run->missing[i] == 0) first.push_back(i);
    for (const std::size_t i : first) come_up(run, i);
  });
  submit(
      on, "the end of a graph",
      [run, &on] {
        const As turn{on.actor};
        for (const Token& each : run->done) acquire(each.place());
      },
      [run] { return run->left == 0; });
  return cudaSuccess;
}

}  // extern "C"
