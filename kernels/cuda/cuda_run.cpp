// Streams and events: every op on its streams in program order, waits for what it names, and an end
// that waits for all without hanging on what will never come.
#include "kernels/cuda/cuda_run.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <thread>

#include "kernels/cuda/cuda_run_call.hpp"
#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

CudaRun::CudaRun(const Program& program, const CudaMemory& memory, const CudaOptions& options)
    : program_{program},
      memory_{memory},
      options_{options},
      streams_{program},
      lanes_(streams_.size()),
      moments_(program.size()) {
  ASSERT(program.folded.empty());
  if (!options.cupti.empty()) records_ = std::make_unique<CudaRecords>(options.cupti);
  for (const Program::Op& op : program.ops())
    for (const Rank rank : ranks_of(program, op)) {
      Lane& lane = lane_of(rank, op.stream);
      if (lane.stream != nullptr || !is_here(rank)) continue;
      lane.device = memory.device_of(rank);
      lane.stream = make_stream(lane.device);
      ranges_.name(lane.stream.get(), rank, op.stream);
      if (origins_.contains(lane.device)) continue;
      origins_[lane.device] = make_event(lane.device, true);
    }
  if (!options.processes) return;
  find_predecessors();
  make_communicators();
}

int CudaRun::node_of(Rank rank) const {
  return options_.node_of.empty() ? 0 : options_.node_of[index(rank)];
}

void CudaRun::record(EventHandle& event, Lane& lane, bool with_time) {
  if (event == nullptr) event = make_event(lane.device, with_time);
  CUDA_TRY(cudaSetDevice(lane.device));
  // In a graph, an event with a time is a node of its own: only so does it tell one.
  const bool is_node = with_time && is_capturing_;
  CUDA_TRY(cudaEventRecordWithFlags(event.get(), lane.stream.get(),
                                    is_node ? cudaEventRecordExternal : cudaEventRecordDefault));
}

void CudaRun::order(Lane& first, Lane& second) {
  // An event may be recorded again at once: who waits for it waits for what it was when asked.
  EventHandle& joint = joints_[&first];
  record(joint, first, false);
  CUDA_TRY(cudaStreamWaitEvent(second.stream.get(), joint.get(), 0));
}

// What came before on the same stream is waited for by the stream itself.
void CudaRun::wait_for_inputs(OpId id, Lane& lane) {
  if (options_.processes) return wait_for_predecessors(id, lane);
  for (const OpId input : program_.after(id)) {
    ASSERT(index(input) < index(id));
    const EventHandle& end = is_capturing_ ? edges_[index(input)] : moments_[index(input)].end;
    CUDA_TRY(cudaStreamWaitEvent(lane.stream.get(), end.get(), 0));
  }
}

void CudaRun::start() {
  watch_ = {};
  // Each device's clock begins when all of its memory is in place.
  for (auto& [device, origin] : origins_) {
    CUDA_TRY(cudaSetDevice(device));
    CUDA_TRY(cudaDeviceSynchronize());
    CUDA_TRY(cudaEventRecord(origin.get(), nullptr));
  }
  // No stream waits for the default one, so that the host must.
  for (auto& [device, origin] : origins_) CUDA_TRY(cudaEventSynchronize(origin.get()));
  begun_ = std::chrono::steady_clock::now().time_since_epoch();
  waited_.clear();
  if (records_ != nullptr) records_begin_ = records_->restart();
  const bool is_first = !std::exchange(has_run_, true);
  if (options_.graph && !is_first) return launch_graph();
  if (program_.has_queues()) return start_as_served();
  for (std::size_t i = 0; i < program_.size(); ++i) start_op(static_cast<OpId>(i));
}

void CudaRun::start_op(OpId id) {
  const Program::Op& op = program_[id];
  Lane* const here = lane_here(op);
  if (here == nullptr) return;  // other processes do it
  Lane& lane = *here;
  const CudaRanges::Range range{ranges_, program_, id};
  const CudaRecords::Of records{records_.get(), id};
  if (op.kind == WorkKind::collective) {
    for (const Rank rank : program_.collective(op).group)
      if (is_here(rank)) wait_for_inputs(id, lane_of(rank, op.stream));
  }
  if (op.kind != WorkKind::collective) wait_for_inputs(id, lane);
  record(moments_[index(id)].begin, lane, true);
  CUDA_TRY(cudaSetDevice(lane.device));
  if (op.kind == WorkKind::compute) start_compute(op, lane);
  if (op.kind == WorkKind::transfer) start_transfer(op, lane);
  if (op.kind == WorkKind::collective) start_collective(op);
  record(moments_[index(id)].end, lane, true);
  if (is_capturing_) record(edges_[index(id)], lane, false);
}

// One block a lane, used again by each of its calls, which run one after another. What it outgrew
// stays: work under way may use it. The same calls again find all that they need: a graph is made
// of the second run, and cannot allocate.
std::byte* CudaRun::take(Scratch& scratch, int device, std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  const std::size_t needed = (bytes + alignment - 1) / alignment * alignment;
  scratch.asked += needed;
  if (scratch.bytes - scratch.used < needed || scratch.bytes < scratch.asked) {
    const CudaRecords::Of nobody{records_.get(), no_op};  // clearing it is not the op's work
    if (scratch.block != nullptr) outgrown_.push_back(std::move(scratch.block));
    const std::size_t size = std::max(2 * scratch.bytes, scratch.asked);
    scratch = {make_block(device, size), size, 0, scratch.asked};
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
    scratch.used = scratch.asked = 0;
    BlasHandle& blas = blas_[lane.device];
    if (blas == nullptr) blas = make_blas(lane.device);
    const auto more = [&](std::size_t bytes) { return take(scratch, lane.device, bytes); };
    start_call({lane.stream.get(), blas.get(), more}, call, mine);
  }
}

void CudaRun::check_communicators() {
  for (const auto& [group, communicators] : communicators_)
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      if (communicators[i] == nullptr) continue;
      ncclResult_t error = ncclSuccess;
      NCCL_TRY(ncclCommGetAsyncError(communicators[i].get(), &error));
      if (error != ncclSuccess && error != ncclInProgress)
        throw DeviceError(
            fmt::format("NCCL on rank {}: {}", index(group[i]), ncclGetErrorString(error)));
    }
}

bool CudaRun::is_over(OpId id) const {
  const EventHandle& end = moments_[index(id)].end;
  if (end == nullptr) return true;  // of another process
  const cudaError_t state = cudaEventQuery(end.get());
  if (state != cudaSuccess && state != cudaErrorNotReady)
    throw DeviceError(fmt::format("{}: {}", program_.describe(id), cudaGetErrorString(state)));
  return state == cudaSuccess;
}

// Unless something behind the op has ended since it was last asked.
void CudaRun::give_up_at(OpId id) {
  const auto has_ended = [](const Moments& each) {
    return each.end != nullptr && cudaEventQuery(each.end.get()) == cudaSuccess;
  };
  const auto now = static_cast<std::size_t>(std::ranges::count_if(moments_, has_ended));
  if (now <= std::exchange(watch_.ended, now))
    throw DeviceError(fmt::format("{} has not ended, and nothing else has for {} ms",
                                  program_.describe(id), options_.patience.count()));
}

// Patience counts while this process runs: one that was stopped for a while has not waited.
bool CudaRun::is_patient() {
  constexpr Clock::duration most = std::chrono::milliseconds{100};
  if (options_.processes) options_.processes->look();
  check_communicators();
  if (options_.stop && options_.stop()) throw DeviceError("stopped before the end");
  const Clock::time_point now = Clock::now();
  watch_.waited += std::min(now - watch_.asked, most);
  watch_.asked = now;
  // NCCL has threads of its own; but on a busy machine each turn given away is milliseconds.
  if (++watch_.times % 64 == 0) std::this_thread::yield();
  if (watch_.waited <= options_.patience) return true;
  watch_.waited = {};
  return false;
}

// Asks instead of waiting: a collective whose partner is lost never ends, but its communicator
// learns of it.
void CudaRun::finish() {
  if (graph_run_ != nullptr) return finish_graph();
  for (std::size_t i = 0; i < program_.size();) {
    const auto id = static_cast<OpId>(i);
    if (is_over(id)) {
      watch_.waited = {};
      ++i;
    } else if (!is_patient()) {
      give_up_at(id);
    }
  }
}

CudaExecutor::CudaExecutor(const CudaMemory& memory, CudaOptions options)
    : memory_{memory}, options_{std::move(options)} {}

CudaExecutor::~CudaExecutor() = default;

// Whoever is lost takes NCCL's calls of the others with it: its name is the better message.
Timeline CudaExecutor::run(const Program& program) {
  if (!options_.processes) return run_here(program);
  try {
    return run_here(program);
  } catch (const DeviceError&) {
    using Clock = std::chrono::steady_clock;
    for (const auto begin = Clock::now(); Clock::now() - begin < std::chrono::seconds{3};) {
      options_.processes->look();
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    throw;
  }
}

Timeline CudaExecutor::run_here(const Program& program) {
  if (program_ != &program) {
    run_ = nullptr;  // first: its memory, and CUPTI, which has one reader
    run_ = std::make_unique<CudaRun>(program, memory_, options_);
  }
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
