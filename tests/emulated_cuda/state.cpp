// Who may run: the head of each stream, unless the default stream of its device is in the way.
#include "tests/emulated_cuda/state.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "sim/base/assert.hpp"
#include "tests/emulated_cuda/block.hpp"
#include "tests/emulated_cuda/graphs.hpp"

namespace emulated_cuda {

namespace {

thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

const ActivityListener* listener = nullptr;

std::unique_ptr<State>& current() {
  static std::unique_ptr<State> all = std::make_unique<State>(Options{});
  return all;
}

std::condition_variable_any& changed() {
  static std::condition_variable_any all;
  return all;
}

// A kernel that touches what it may not gets the error of a real device. Anyone else: that is the
// host reading device memory, and the program ends as it would for any wrong pointer.
void on_fault(int, siginfo_t* info, void*) {
  act_as_host();
  const Memory& memory = current()->memory;
  if (memory.owner(info->si_addr) >= 0)
    abandon_block("touches " + memory.describe(info->si_addr) + ", which its device may not");
  std::fprintf(stderr, "emulated CUDA: the host touches %s\n",
               memory.describe(info->si_addr).c_str());
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

void catch_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
}

bool is_default(const State& all, const CUstream_st* stream) {
  return all.default_streams[static_cast<std::size_t>(stream->device)].get() == stream;
}

// The default stream and the streams that wait for it run in the order of calls.
bool is_held_back(const State& all, const CUstream_st& stream) {
  if (!stream.waits_for_default) return false;
  for (const CUstream_st* other : all.streams)
    if (other != &stream && other->device == stream.device && other->waits_for_default &&
        (is_default(all, other) || is_default(all, &stream)) && !other->work.empty() &&
        other->work.front().number < stream.work.front().number)
      return true;
  return false;
}

bool is_runnable(const State& all, const CUstream_st& stream) {
  if (stream.work.empty() || is_held_back(all, stream)) return false;
  const Work& head = stream.work.front();
  return !head.is_ready || head.is_ready();
}

std::string waiting_text(const State& all) {
  std::string text;
  for (const CUstream_st* stream : all.streams)
    if (!stream->work.empty())
      text += fmt::format("; device {} waits in {} ({} behind it)", stream->device,
                          stream->work.front().what, stream->work.size() - 1);
  return text;
}

}  // namespace

State::State(const Options& of) : options{of}, memory{of.devices, of.memory}, draw{of.seed} {
  for (int device = 0; device < of.devices; ++device) {
    default_streams.push_back(std::make_unique<CUstream_st>());
    default_streams.back()->device = device;
    default_streams.back()->waits_for_default = true;
    streams.push_back(default_streams.back().get());
    nodes_done.emplace_back();
  }
}

void reset(const Options& options) {
  const std::lock_guard guard{lock()};
  catch_faults();
  for (CUstream_st* stream : current()->streams)
    if (!is_default(*current(), stream)) delete stream;
  for (CUevent_st* event : current()->events) delete event;
  for (void* host : current()->host_allocations) ::operator delete(host);
  current() = std::make_unique<State>(options);
  device_of_thread = 0;
  last_error = cudaSuccess;
}

std::string leaks() {
  const std::lock_guard guard{lock()};
  const State& all = state();
  std::string text;
  const auto count = [&](std::size_t number, const char* what) {
    if (number > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, what);
  };
  const auto nodes = std::ranges::count_if(all.streams, &CUstream_st::is_node);  // of a failed run
  count(all.streams.size() - all.default_streams.size() - static_cast<std::size_t>(nodes),
        "streams");
  count(all.events.size(), "events");
  count(all.memory.allocations(), "allocations");
  count(all.host_allocations.size(), "host allocations");
  count(all.other_handles.size(), "handles");
  return text;
}

const std::vector<std::string>& complaints() { return state().complaints; }

std::recursive_mutex& lock() {
  static std::recursive_mutex all;
  return all;
}
State& state() { return *current(); }
int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }
cudaError_t take_last_error(bool clear) {
  const cudaError_t error = last_error;
  if (clear) last_error = state().failure;
  return error;
}

void complain(const std::string& text) {
  fmt::print(stderr, "emulated CUDA: {}\n", text);
  state().complaints.push_back(text);
}
cudaError_t fail(cudaError_t error, const std::string& text) {
  complain(text);
  if (state().failure == cudaSuccess) state().failure = error;
  return result(error);
}
cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

CUstream_st* resolve(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy)
    return state().default_streams[static_cast<std::size_t>(device_of_thread)].get();
  return stream;
}

void submit(CUstream_st& stream, std::string what, std::function<void()> run,
            std::function<bool()> is_ready) {
  if (stream.capture != nullptr)
    return add_node(stream, std::move(what), std::move(run), std::move(is_ready));
  const std::uint64_t number = ++state().numbers;
  if (listener != nullptr) listener->submitted(number, what.c_str());
  stream.work.push_back({number, std::move(what), std::move(run), std::move(is_ready), {}});
  release(stream.work.back().order.place());
  ++stream.submitted;
  changed().notify_all();
}

// What a stream has seen when its next work begins: the host at the call, and what the default
// stream keeps in order.
void see_before(State& all, CUstream_st& stream, const Work& work) {
  const As turn{stream.actor};
  acquire(work.order.place());
  if (!stream.waits_for_default) return;
  for (const CUstream_st* other : all.streams)
    if (other != &stream && other->device == stream.device && other->waits_for_default &&
        (is_default(all, other) || is_default(all, &stream)))
      acquire(other->done.place());
}

bool step() {
  State& all = state();
  std::vector<CUstream_st*> runnable;
  for (CUstream_st* stream : all.streams)
    if (is_runnable(all, *stream)) runnable.push_back(stream);
  if (runnable.empty()) return false;
  CUstream_st& stream = *runnable[all.draw() % runnable.size()];
  Work work = std::move(stream.work.front());
  stream.work.pop_front();
  const std::uint64_t begin = all.clock;
  all.clock += 1000;
  see_before(all, stream, work);
  if (work.run && all.failure == cudaSuccess) work.run();
  if (listener != nullptr) listener->ran(work.number, stream.device, begin, all.clock);
  {
    const As turn{stream.actor};
    release(stream.done.place());
  }
  {
    // The stream has read what is in it, and the host has not waited for that.
    const Unseen end;
    work = {};
  }
  ++stream.completed;
  if (stream.is_node) {
    std::erase(all.streams, &stream);
    delete &stream;
  }
  changed().notify_all();
  return true;
}

void step_or_nap() {
  using namespace std::chrono_literals;
  if (!step() && state().has_others) std::this_thread::sleep_for(200us);
}

cudaError_t run_until(const std::function<bool()>& condition, const char* call) {
  using namespace std::chrono_literals;
  std::unique_lock guard{lock()};
  for (int idle = 0; !condition();) {
    if (state().failure != cudaSuccess) break;
    if (step()) {
      idle = 0;
    } else if (changed().wait_for(guard, state().has_others ? 1ms : 10ms) ==
                   std::cv_status::timeout &&
               ++idle > (state().has_others ? 30000 : 50)) {
      // Half a second of nothing: no other host thread brings what is missing; processes may.
      return fail(cudaErrorLaunchTimeout,
                  fmt::format("{} would wait forever{}", call, waiting_text(state())));
    }
  }
  return result(state().failure);
}

cudaError_t synchronize(CUstream_st& stream, const char* call) {
  if (const cudaError_t error = refuse_while_capturing(&stream, call)) return error;
  const std::uint64_t until = stream.submitted;
  const cudaError_t error = run_until([&stream, until] { return stream.completed >= until; }, call);
  acquire(stream.done.place());
  return error;
}

}  // namespace emulated_cuda

void emulated_cuda_listen(const emulated_cuda::ActivityListener* to) {
  const std::lock_guard guard{emulated_cuda::lock()};
  emulated_cuda::listener = to;
}

std::uint64_t emulated_cuda_clock() {
  const std::lock_guard guard{emulated_cuda::lock()};
  return emulated_cuda::state().clock;
}
