// Streams and events: every op on its streams in program order, waits for what it names, and an end
// that waits for all without hanging on what will never come.
#include "kernels/cuda_run.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <thread>

#include "kernels/cuda_run_call.hpp"
#include "kernels/cuda_try.hpp"
#include "sim/assert.hpp"
#include "sim/error.hpp"

namespace rehearse {

CudaRun::CudaRun(const Program& program, const CudaMemory& memory, const CudaOptions& options)
    : program_{program},
      memory_{memory},
      options_{options},
      streams_{program},
      lanes_(streams_.size()),
      moments_(program.size()) {
  ASSERT(program.folded.empty());
  for (const Program::Op& op : program.ops())
    for (const Rank rank : ranks_of(program, op)) {
      Lane& lane = lane_of(rank, op.stream);
      if (lane.stream != nullptr) continue;
      lane.device = memory.device_of(rank);
      lane.stream = make_stream(lane.device);
      if (origins_.contains(lane.device)) continue;
      origins_[lane.device] = make_event(lane.device, true);
    }
}

int CudaRun::node_of(Rank rank) const {
  return options_.node_of.empty() ? 0 : options_.node_of[index(rank)];
}

void CudaRun::record(EventHandle& event, Lane& lane, bool with_time) {
  if (event == nullptr) event = make_event(lane.device, with_time);
  CUDA_TRY(cudaSetDevice(lane.device));
  CUDA_TRY(cudaEventRecord(event.get(), lane.stream.get()));
}

void CudaRun::order(Lane& first, Lane& second) {
  // An event may be recorded again at once: who waits for it waits for what it was when asked.
  EventHandle& joint = joints_[&first];
  record(joint, first, false);
  CUDA_TRY(cudaStreamWaitEvent(second.stream.get(), joint.get(), 0));
}

// What came before on the same stream is waited for by the stream itself.
void CudaRun::wait_for_inputs(OpId id, Lane& lane) {
  for (const OpId input : program_.after(id)) {
    ASSERT(index(input) < index(id));
    CUDA_TRY(cudaStreamWaitEvent(lane.stream.get(), moments_[index(input)].end.get(), 0));
  }
}

void CudaRun::start() {
  // Each device's clock begins when all of its memory is in place.
  for (auto& [device, origin] : origins_) {
    CUDA_TRY(cudaSetDevice(device));
    CUDA_TRY(cudaDeviceSynchronize());
    CUDA_TRY(cudaEventRecord(origin.get(), nullptr));
  }
  // No stream waits for the default one, so that the host must.
  for (auto& [device, origin] : origins_) CUDA_TRY(cudaEventSynchronize(origin.get()));
  for (std::size_t i = 0; i < program_.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = program_[id];
    if (op.kind == WorkKind::collective) {
      for (const Rank rank : program_.collective(op).group)
        wait_for_inputs(id, lane_of(rank, op.stream));
    }
    Lane& lane = lane_of(ranks_of(program_, op).front(), op.stream);
    if (op.kind != WorkKind::collective) wait_for_inputs(id, lane);
    record(moments_[i].begin, lane, true);
    CUDA_TRY(cudaSetDevice(lane.device));
    if (op.kind == WorkKind::compute) start_compute(op, lane);
    if (op.kind == WorkKind::transfer) start_transfer(op, lane);
    if (op.kind == WorkKind::collective) start_collective(op);
    record(moments_[i].end, lane, true);
  }
}

// One block a lane, used again by each of its calls, which run one after another. What it outgrew
// stays: work under way may use it.
std::byte* CudaRun::take(Scratch& scratch, int device, std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  const std::size_t needed = (bytes + alignment - 1) / alignment * alignment;
  if (scratch.bytes - scratch.used < needed) {
    if (scratch.block != nullptr) outgrown_.push_back(std::move(scratch.block));
    const std::size_t size = std::max(2 * scratch.bytes, needed);
    scratch = {make_block(device, size), size, 0};
  }
  scratch.used += needed;
  return scratch.block.get() + scratch.used - needed;
}

void CudaRun::start_compute(const Program::Op& op, Lane& lane) {
  const std::span<const KernelCall> calls = program_.calls(op);
  const std::span<const Access> accesses = program_.accesses(op);
  std::vector<std::span<std::byte>> operands;
  for (const Access& access : accesses) operands.push_back(memory_.at(op.rank, access.slice));
  std::size_t taken = 0;
  for (const KernelCall& call : calls) {
    const auto mine = std::span{operands}.subspan(taken, call.operands);
    taken += call.operands;
    Scratch& scratch = scratch_[&lane];
    scratch.used = 0;
    BlasHandle& blas = blas_[lane.device];
    if (blas == nullptr) blas = make_blas(lane.device);
    const auto more = [&](std::size_t bytes) { return take(scratch, lane.device, bytes); };
    start_call({lane.stream.get(), blas.get(), more}, call, mine);
  }
}

void CudaRun::check_communicators() {
  for (const auto& [group, communicators] : communicators_)
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      ncclResult_t error = ncclSuccess;
      NCCL_TRY(ncclCommGetAsyncError(communicators[i].get(), &error));
      if (error != ncclSuccess && error != ncclInProgress)
        throw DeviceError(
            fmt::format("NCCL on rank {}: {}", index(group[i]), ncclGetErrorString(error)));
    }
}

// Unless something behind the op has ended since it was last asked.
void CudaRun::give_up_at(OpId id, std::size_t& ended) {
  const auto is_over = [](const Moments& each) {
    return cudaEventQuery(each.end.get()) == cudaSuccess;
  };
  const auto now = static_cast<std::size_t>(std::ranges::count_if(moments_, is_over));
  if (now <= std::exchange(ended, now))
    throw DeviceError(fmt::format("{} has not ended, and nothing else has for {} ms",
                                  program_.describe(id), options_.patience.count()));
}

// Asks instead of waiting: a collective whose partner is lost never ends, but its communicator
// learns of it. Patience counts while this process runs: one that was stopped for a while has not
// waited.
void CudaRun::finish() {
  using Clock = std::chrono::steady_clock;
  constexpr Clock::duration most = std::chrono::milliseconds{100};
  Clock::time_point asked = Clock::now();
  Clock::duration waited{};
  std::size_t asked_for = 0, ended = 0;
  for (std::size_t i = 0; i < program_.size();) {
    const cudaError_t state = cudaEventQuery(moments_[i].end.get());
    if (state == cudaSuccess) {
      waited = {};
      ++i;
      continue;
    }
    if (state != cudaErrorNotReady)
      throw DeviceError(fmt::format("{}: {}", program_.describe(static_cast<OpId>(i)),
                                    cudaGetErrorString(state)));
    check_communicators();
    if (options_.stop && options_.stop()) throw DeviceError("stopped before the end");
    const Clock::time_point now = Clock::now();
    waited += std::min(now - asked, most);
    asked = now;
    if (waited > options_.patience) {
      give_up_at(static_cast<OpId>(i), ended);
      waited = {};
    }
    // NCCL has threads of its own; but on a busy machine each turn given away is milliseconds.
    if (++asked_for % 64 == 0) std::this_thread::yield();
  }
}

Timeline CudaRun::timeline() {
  Timeline result;
  result.spans.resize(program_.size());
  for (std::size_t i = 0; i < program_.size(); ++i) {
    const Program::Op& op = program_.ops()[i];
    const int device = memory_.device_of(ranks_of(program_, op).front());
    const auto since_origin = [&](const EventHandle& event) {
      float milliseconds = 0;
      CUDA_TRY(cudaEventElapsedTime(&milliseconds, origins_.at(device).get(), event.get()));
      return Time::round(Seconds{static_cast<double>(milliseconds) * 1e-3});
    };
    result.spans[i].begin = since_origin(moments_[i].begin);
    result.spans[i].end = std::max(since_origin(moments_[i].end), result.spans[i].begin);
    result.makespan = std::max(result.makespan, result.spans[i].end);
  }
  result.events = program_.size();
  return result;
}

CudaExecutor::CudaExecutor(const CudaMemory& memory, CudaOptions options)
    : memory_{memory}, options_{std::move(options)} {}

CudaExecutor::~CudaExecutor() = default;

Timeline CudaExecutor::run(const Program& program) {
  if (program_ != &program) run_ = std::make_unique<CudaRun>(program, memory_, options_);
  program_ = &program;
  try {
    run_->start();
    run_->finish();
    return run_->timeline();
  } catch (...) {
    program_ = nullptr;
    run_ = nullptr;
    throw;
  }
}

}  // namespace rehearse
