// The state behind the emulated functions: streams with the work that waits on them, and who may
// run it. Work runs as late as allowed: only when a host thread waits for something or asks, and
// then in an order drawn from the seed.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/emulated_cuda/activity.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/emulated_cuda/memory.hpp"
#include "tests/emulated_cuda/races.hpp"

namespace emulated_cuda {

/// One recording of an event.
struct Recording {
  bool is_done = false;
  std::uint64_t time = 0;  // nanoseconds of the machine's own clock
  Token order;             // of what came before it
};

struct Capture;

struct Work {
  std::uint64_t number = 0;  // in the order of calls
  std::string what;
  std::function<void()> run;
  std::function<bool()> is_ready;  // empty: at once
  Token order;                     // of the host's call
};

class Crew;

}  // namespace emulated_cuda

// CUDA's own names for what its handles point to.
struct CUstream_st {
  int device = 0;
  bool waits_for_default = false;  // made without cudaStreamNonBlocking
  std::deque<emulated_cuda::Work> work;
  std::uint64_t submitted = 0, completed = 0;
  bool is_node = false;  // made for one node of a graph that runs; gone when that is done
  // While a graph is made of what is put here: the nodes that the next one waits for.
  std::shared_ptr<emulated_cuda::Capture> capture;
  std::vector<std::size_t> tail;
  emulated_cuda::Actor actor;
  emulated_cuda::Token done;  // all work so far
  // Of its kernels, made by the first; the other has its threads apart for the thread sanitizer.
  std::shared_ptr<emulated_cuda::Crew> crew, crew_apart;
};
struct CUevent_st {
  int device = 0;
  bool has_time = true;
  std::shared_ptr<emulated_cuda::Recording> recording;
  // Recorded while a graph was made: it is an edge there, and nothing that has a time.
  std::shared_ptr<emulated_cuda::Capture> capture;
  std::vector<std::size_t> nodes;
};

namespace emulated_cuda {

struct State {
  explicit State(const Options& of);

  Options options;
  Memory memory;
  std::mt19937_64 draw;
  std::vector<std::unique_ptr<CUstream_st>> default_streams;  // by device
  std::vector<CUstream_st*> streams;                          // all, default ones first
  std::vector<Token> nodes_done;  // by device: nodes of graphs, also of one that broke off
  std::set<CUevent_st*> events;
  std::set<void*> host_allocations;
  std::set<const void*> other_handles;                        // of NCCL and cuBLAS
  std::set<const void*> kernels_with_shared;                  // that may have more than 48 KiB
  std::map<std::vector<std::uintptr_t>, int> launches_apart;  // by kernel, grid and block
  cudaError_t failure = cudaSuccess;                          // stays, as on a real device
  std::uint64_t numbers = 0, clock = 0;
  int launches = 0, nccl_calls = 0;
  bool has_others = false;  // processes, whose work may be waited for
  std::vector<std::string> complaints;
};

/// Under this lock is all that is emulated, kernels too.
std::recursive_mutex& lock();
State& state();
int current_device();  // of this host thread
void set_current_device(int device);
cudaError_t take_last_error(bool clear);

/// Says what is wrong; an error is also what every call gives from now on.
void complain(const std::string& text);
cudaError_t fail(cudaError_t error, const std::string& text);
/// What a call returns, kept for cudaGetLastError.
cudaError_t result(cudaError_t error);

CUstream_st* resolve(cudaStream_t stream);
void submit(CUstream_st& stream, std::string what, std::function<void()> run,
            std::function<bool()> is_ready = {});
/// The machine's clock goes on by what moving so many bytes takes, at 4 GB/s: figures that mean
/// nothing, but have the shape of a link's.
inline void pass_time(std::size_t bytes) { state().clock += bytes / 4; }
/// Runs one piece of work that may run; false if there is none.
bool step();
/// The same for who only asks; while other processes work, it sleeps a little instead.
void step_or_nap();
/// Runs work until the condition holds; a complaint and an error if nothing can make it hold.
cudaError_t run_until(const std::function<bool()>& condition, const char* call);
/// The same, and the host sees what the work of the stream did.
cudaError_t synchronize(CUstream_st& stream, const char* call);

}  // namespace emulated_cuda
