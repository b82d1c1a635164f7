// Streams, events, kernels and errors of the emulated CUDA runtime.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "tests/emulated_cuda/block.hpp"
#include "tests/emulated_cuda/graphs.hpp"
#include "tests/emulated_cuda/launch.hpp"
#include "tests/emulated_cuda/state.hpp"

namespace emulated_cuda {

namespace {

// "… launch(…) [with Parameters = {float*, …}; …]" has no kernel's name: its address does not tell.
std::string name_of(std::string_view signature, int number) {
  const std::size_t begin = signature.find("{"), end = signature.find("}");
  const std::string parameters = begin < end && end != signature.npos
                                     ? std::string{signature.substr(begin + 1, end - begin - 1)}
                                     : std::string{};
  return fmt::format("kernel number {} ({})", number, parameters);
}

std::string wrong_pointer(int device, const std::vector<const void*>& pointers) {
  const Memory& memory = state().memory;
  for (const void* pointer : pointers) {
    if (pointer == nullptr || state().host_allocations.contains(const_cast<void*>(pointer)))
      continue;
    const int owner = memory.owner(pointer);
    if (owner < 0) return "is given memory of the host";
    if (!memory.can_touch(device, owner))
      return fmt::format("on device {} is given {} without peer access", device,
                         memory.describe(pointer));
    if (memory.describe(pointer).find("freed") != std::string::npos)
      return "is given " + memory.describe(pointer);
  }
  return {};
}

void run_blocks(Crew& crew, const std::string& name, const BlockShape& shape,
                const std::function<void()>& body) {
  State& all = state();
  std::vector<unsigned> order(std::size_t{shape.grid.x} * shape.grid.y * shape.grid.z);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), all.draw);
  for (const unsigned i : order) {
    const uint3 number{i % shape.grid.x, i / shape.grid.x % shape.grid.y,
                       i / shape.grid.x / shape.grid.y};
    const std::string error = run_block(body, shape, number, all.draw, crew);
    if (error.empty()) continue;
    const bool is_address = error.starts_with("touches");
    fail(is_address ? cudaErrorIllegalAddress : cudaErrorLaunchFailure,
         fmt::format("{}, block {}: {}", name, i, error));
    return;
  }
}

// Threads that are kept apart cost the thread sanitizer most of its time, so that only the first
// launches of a kernel with its shape have them; between streams every launch is looked at.
Crew& crew_of(CUstream_st& stream, const void* kernel, const BlockShape& shape) {
  constexpr int most_apart = 4;
  if (sees_races) {
    if (stream.crew_apart == nullptr) stream.crew_apart = make_crew(stream.actor, true);
    const dim3 grid = shape.grid, block = shape.block;
    int& launches = state().launches_apart[{reinterpret_cast<std::uintptr_t>(kernel), grid.x,
                                            grid.y, grid.z, block.x, block.y, block.z}];
    if (keeps_threads_apart(*stream.crew_apart) && launches < most_apart) {
      ++launches;
      return *stream.crew_apart;
    }
  }
  if (stream.crew == nullptr) stream.crew = make_crew(stream.actor, false);
  return *stream.crew;
}

struct Launch {
  const void* kernel;
  std::string name;
  BlockShape shape;
  std::vector<const void*> pointers;
  std::function<void()> body;
};

void run_kernel(CUstream_st& stream, const Launch& launch) {
  State& all = state();
  const int device = stream.device;
  if (const std::string wrong = wrong_pointer(device, launch.pointers); !wrong.empty()) {
    fail(cudaErrorIllegalAddress, launch.name + " " + wrong);
    return;
  }
  const std::vector<int> reach = all.memory.reach(device);
  const Memory::Access open{all.memory, reach};
  Crew& crew = crew_of(stream, launch.kernel, launch.shape);
  begin_kernel(crew);
  run_blocks(crew, launch.name, launch.shape, launch.body);
  end_kernel(crew);
  if (all.failure != cudaSuccess) return;
  if (const auto damage = all.memory.damage(reach))
    fail(cudaErrorIllegalAddress, fmt::format("{} wrote {}", launch.name, *damage));
}

bool is_possible(const cudaLaunchConfig_t& config, const void* kernel) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  const std::size_t shared_limit =
      state().kernels_with_shared.contains(kernel) ? 227 << 10 : 48 << 10;
  return threads >= 1 && threads <= 1024 && block.z <= 64 && grid.x >= 1 && grid.x < 1U << 31 &&
         grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535 &&
         config.dynamicSmemBytes <= shared_limit;
}

}  // namespace

cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, std::string_view signature,
                           const void* kernel, std::vector<const void*> pointers,
                           std::function<void()> body) {
  const std::lock_guard guard{lock()};
  State& all = state();
  if (all.failure != cudaSuccess) return result(all.failure);
  if (!is_possible(config, kernel)) return result(cudaErrorInvalidConfiguration);
  CUstream_st& stream = *resolve(config.stream);
  if (stream.device != current_device()) return result(cudaErrorInvalidResourceHandle);
  const int number = ++all.launches;
  Launch launch{kernel,
                name_of(signature, number),
                {config.gridDim, config.blockDim, config.dynamicSmemBytes},
                std::move(pointers),
                std::move(body)};
  const std::string name = launch.name;
  submit(stream, name, [&stream, number, launch = std::move(launch)] {
    if (number == state().options.faults.killing_launch) raise(SIGKILL);
    if (number == state().options.faults.failing_launch)
      fail(cudaErrorLaunchFailure, launch.name + " fails on purpose");
    else
      run_kernel(stream, launch);
  });
  return cudaSuccess;
}

}  // namespace emulated_cuda

using namespace emulated_cuda;

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorLaunchTimeout:
      return "cudaErrorLaunchTimeout";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureMerge:
      return "cudaErrorStreamCaptureMerge";
    case cudaErrorStreamCaptureUnmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "cudaError";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : cudaGetErrorName(error);
}
cudaError_t cudaGetLastError() { return take_last_error(true); }
cudaError_t cudaPeekAtLastError() { return take_last_error(false); }

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const std::lock_guard guard{lock()};
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > 227 << 10)
    return result(cudaErrorInvalidValue);
  state().kernels_with_shared.insert(kernel);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const std::lock_guard guard{lock()};
  *stream = new CUstream_st;
  (*stream)->device = current_device();
  (*stream)->waits_for_default = (flags & cudaStreamNonBlocking) == 0;
  state().streams.push_back(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  leave_capture(*stream);
  const cudaError_t error = synchronize(*stream, "cudaStreamDestroy");
  const std::lock_guard guard{lock()};
  auto& streams = state().streams;
  const auto at = std::ranges::find(streams, stream);
  if (at == streams.end()) return result(cudaErrorInvalidResourceHandle);
  streams.erase(at);
  delete stream;
  return result(error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return synchronize(*resolve(stream), "cudaStreamSynchronize");
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard guard{lock()};
  if (const cudaError_t error = refuse_while_capturing(resolve(stream), "cudaStreamQuery"))
    return error;
  step_or_nap();
  if (state().failure != cudaSuccess) return result(state().failure);
  if (!resolve(stream)->work.empty()) return cudaErrorNotReady;
  acquire(resolve(stream)->done.place());
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = refuse_while_capturing(nullptr, "cudaDeviceSynchronize"))
    return error;
  std::vector<std::pair<const CUstream_st*, std::uint64_t>> until;
  {
    const std::lock_guard guard{lock()};
    for (const CUstream_st* stream : state().streams)
      if (stream->device == current_device() && !stream->is_node)
        until.emplace_back(stream, stream->submitted);
  }
  const cudaError_t error = run_until(
      [&] {
        return std::ranges::all_of(
            until, [](const auto& each) { return each.first->completed >= each.second; });
      },
      "cudaDeviceSynchronize");
  for (const auto& [stream, number] : until) acquire(stream->done.place());
  acquire(state().nodes_done[static_cast<std::size_t>(current_device())].place());
  return error;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const std::lock_guard guard{lock()};
  *event = new CUevent_st;
  (*event)->device = current_device();
  (*event)->has_time = (flags & cudaEventDisableTiming) == 0;
  state().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard guard{lock()};
  if (state().events.erase(event) == 0) return result(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  const std::lock_guard guard{lock()};
  CUstream_st& on = *resolve(stream);
  if (event->device != on.device) return result(cudaErrorInvalidResourceHandle);
  const bool is_external = flags == cudaEventRecordExternal;
  // Only a graph has an outside.
  if (is_external && on.capture == nullptr) return result(cudaErrorIllegalState);
  if (on.capture != nullptr && !is_external) return record_edge(*event, on);
  event->capture = nullptr;
  // A node of a graph is met in each of its runs: until then the event is what it was.
  if (!is_external || event->recording == nullptr) event->recording = std::make_shared<Recording>();
  submit(on, "the recording of an event", [recording = event->recording, &on] {
    const As turn{on.actor};
    release(recording->order.place());
    recording->is_done = true;
    recording->time = state().clock;
  });
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard guard{lock()};
  CUstream_st& on = *resolve(stream);
  if (event->capture != nullptr) return wait_for_edge(on, *event);
  const auto recording = event->recording;
  if (recording == nullptr) return cudaSuccess;
  if (on.capture != nullptr)
    return break_capture(*on.capture, cudaErrorStreamCaptureIsolation,
                         "a graph waits for an event that was recorded outside of it");
  submit(
      on, fmt::format("a wait for an event of device {}", event->device),
      [recording, &on] {
        const As turn{on.actor};
        acquire(recording->order.place());
      },
      [recording] { return recording->is_done; });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = refuse_edge(*event, "cudaEventSynchronize")) return error;
  const auto recording = event->recording;
  if (recording == nullptr) return cudaSuccess;
  const cudaError_t error =
      run_until([recording] { return recording->is_done; }, "cudaEventSynchronize");
  acquire(recording->order.place());
  return error;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard guard{lock()};
  if (const cudaError_t error = refuse_edge(*event, "cudaEventQuery")) return error;
  step_or_nap();
  if (state().failure != cudaSuccess) return result(state().failure);
  if (event->recording == nullptr) return cudaSuccess;
  if (!event->recording->is_done) return cudaErrorNotReady;
  acquire(event->recording->order.place());
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::lock_guard guard{lock()};
  if (!begin->has_time || !end->has_time || begin->recording == nullptr ||
      end->recording == nullptr)
    return result(cudaErrorInvalidResourceHandle);
  if (!begin->recording->is_done || !end->recording->is_done) return cudaErrorNotReady;
  *milliseconds =
      (static_cast<float>(end->recording->time) - static_cast<float>(begin->recording->time)) *
      1e-6F;
  return cudaSuccess;
}

}  // extern "C"
