// Who may run: the head of each stream, unless the default stream of its device is in the way.
#include "tests/emulated_cuda/state.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>

#include "sim/assert.hpp"
#include "tests/emulated_cuda/block.hpp"

namespace emulated_cuda {

namespace {

thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

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
  count(all.streams.size() - all.default_streams.size(), "streams");
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
  stream.work.push_back({++state().numbers, std::move(what), std::move(run), std::move(is_ready)});
  ++stream.submitted;
  changed().notify_all();
}

bool step() {
  State& all = state();
  std::vector<CUstream_st*> runnable;
  for (CUstream_st* stream : all.streams)
    if (is_runnable(all, *stream)) runnable.push_back(stream);
  if (runnable.empty()) return false;
  CUstream_st& stream = *runnable[all.draw() % runnable.size()];
  const Work work = std::move(stream.work.front());
  stream.work.pop_front();
  all.clock += 1000;
  if (work.run && all.failure == cudaSuccess) work.run();
  ++stream.completed;
  changed().notify_all();
  return true;
}

cudaError_t run_until(const std::function<bool()>& condition, const char* call) {
  using namespace std::chrono_literals;
  std::unique_lock guard{lock()};
  for (int idle = 0; !condition();) {
    if (state().failure != cudaSuccess) break;
    if (step()) {
      idle = 0;
    } else if (changed().wait_for(guard, 10ms) == std::cv_status::timeout && ++idle > 50) {
      // Half a second of nothing: no other host thread brings what is missing.
      return fail(cudaErrorLaunchTimeout,
                  fmt::format("{} would wait forever{}", call, waiting_text(state())));
    }
  }
  return result(state().failure);
}

cudaError_t synchronize(CUstream_st& stream, const char* call) {
  const std::uint64_t until = stream.submitted;
  return run_until([&stream, until] { return stream.completed >= until; }, call);
}

}  // namespace emulated_cuda
