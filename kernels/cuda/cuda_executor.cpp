// Every op on its streams in program order, waits for what it names, and an end that waits for all
// without hanging on what will never come.
#include "kernels/cuda/cuda_executor.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "kernels/cuda/cuda_graph.hpp"
#include "kernels/cuda/cuda_nccl.hpp"
#include "kernels/cuda/cuda_processes.hpp"
#include "kernels/cuda/cuda_queues.hpp"
#include "kernels/cuda/cuda_run_call.hpp"
#include "kernels/cuda/cuda_transfers.hpp"
#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

/// How long the host waits for GPUs. It asks instead of waiting: a collective whose partner is lost
/// never ends, but its communicator learns of it.
class CudaWatch {
 public:
  CudaWatch(const CudaOptions& options, const CudaCommunicators& communicators)
      : options_{options}, communicators_{communicators} {}

  void restart() {
    see_progress();
    asked_ = Clock::now();
    turns_ = ended_ = 0;
  }
  void see_progress() { waited_ = {}; }

  /// One turn of waiting. Patience counts while this process runs: one that was stopped for a while
  /// has not waited.
  bool is_patient() {
    constexpr Clock::duration most = std::chrono::milliseconds{100};
    if (options_.processes) options_.processes->look();
    communicators_.check();
    if (options_.stop && options_.stop()) throw DeviceError("stopped before the end");
    const Clock::time_point now = Clock::now();
    waited_ += std::min(now - asked_, most);
    asked_ = now;
    // NCCL has threads of its own; but on a busy machine each turn given away is milliseconds.
    if (++turns_ % 64 == 0) std::this_thread::yield();
    if (waited_ <= options_.patience) return true;
    waited_ = {};
    return false;
  }
  /// Whether more have ended than when it was last asked.
  bool has_more(std::size_t ended) { return ended > std::exchange(ended_, ended); }

 private:
  using Clock = std::chrono::steady_clock;

  const CudaOptions& options_;
  const CudaCommunicators& communicators_;
  Clock::time_point asked_;
  Clock::duration waited_{};
  std::size_t turns_ = 0, ended_ = 0;
};

}  // namespace

/// What stays between the runs of one program.
class CudaExecutor::Run {
 public:
  Run(const Program& program, const CudaMemory& memory, const CudaOptions& options);

  void start();   // puts every op on its streams
  void finish();  // waits for all of them
  Timeline timeline();

 private:
  void start_all();
  void start_op(OpId id);
  void wait_for_inputs(OpId id, const CudaStream& stream);
  void start_compute(const Program::Op& op, CudaStream& stream);
  void wait_for(OpId id);  // one turn; throws when nothing has ended for too long

  const Program& program_;
  const CudaMemory& memory_;
  const CudaOptions& options_;
  CudaRanges ranges_;
  std::unique_ptr<CudaRecords> records_;  // null: events tell the times
  CudaStreams streams_;
  CudaEvents events_;
  std::optional<CudaPredecessors> predecessors_;  // with processes
  std::map<int, BlasHandle> blas_;                // by device
  CudaGraph graph_;
  bool has_run_ = false;
  std::vector<OpId> served_;  // ops of queues, as they were put on their streams
  // Behind what work is on, so that they end first: streams could not be destroyed while they wait
  // for a lost rank.
  CudaCommunicators communicators_;
  CudaTransfers transfers_;
  CudaWatch watch_;
};

CudaExecutor::Run::Run(const Program& program, const CudaMemory& memory, const CudaOptions& options)
    : program_{program},
      memory_{memory},
      options_{options},
      records_{options.cupti.empty() ? nullptr : std::make_unique<CudaRecords>(options.cupti)},
      streams_{program, memory, ranges_, records_.get()},
      events_{program, streams_},
      predecessors_{options.processes ? std::optional{CudaPredecessors{program, streams_}}
                                      : std::nullopt},
      communicators_{program, memory, options.processes},
      transfers_{program, memory, options.node_of, streams_, communicators_},
      watch_{options, communicators_} {}

void CudaExecutor::Run::start() {
  watch_.restart();
  events_.start_clocks();
  if (predecessors_) predecessors_->restart();
  if (records_ != nullptr) records_->restart();
  const bool is_first = !std::exchange(has_run_, true);
  if (options_.graph && !is_first) {
    ASSERT(!program_.has_queues());
    if (!graph_.is_made()) graph_.capture(streams_, events_, [this] { start_all(); });
    graph_.launch();
  } else if (program_.has_queues()) {
    const auto start = [this](OpId id) {
      start_op(id);
      watch_.see_progress();
    };
    served_ = start_as_served(program_, streams_.table(), events_, start,
                              [this](OpId id) { wait_for(id); });
  } else {
    start_all();
  }
}

void CudaExecutor::Run::start_all() {
  for (std::size_t i = 0; i < program_.size(); ++i) start_op(static_cast<OpId>(i));
}

void CudaExecutor::Run::start_op(OpId id) {
  const Program::Op& op = program_[id];
  CudaStream* const stream = streams_.of(op);
  if (stream == nullptr) return;  // other processes do it
  const CudaRanges::Range range{ranges_, program_, id};
  const CudaRecords::Of records{records_.get(), id};
  for (const CudaStream* each : streams_.all_of(op)) wait_for_inputs(id, *each);
  events_.record_begin(id, *stream);
  CUDA_TRY(cudaSetDevice(stream->device));
  if (op.kind == WorkKind::compute) start_compute(op, *stream);
  if (op.kind == WorkKind::transfer) transfers_.start(program_.transfer(op), *stream);
  if (op.kind == WorkKind::collective)
    start_collective(program_, op, memory_, streams_, communicators_);
  events_.record_end(id, *stream);
}

// What came before on the same stream is waited for by the stream itself.
void CudaExecutor::Run::wait_for_inputs(OpId id, const CudaStream& stream) {
  if (predecessors_) {
    for (const OpId input : predecessors_->missing(id, stream)) events_.make_wait(stream, input);
    return;
  }
  for (const OpId input : program_.after(id)) {
    ASSERT(index(input) < index(id));
    events_.make_wait(stream, input);
  }
}

void CudaExecutor::Run::start_compute(const Program::Op& op, CudaStream& stream) {
  std::vector<std::span<std::byte>> operands;
  for (const Access& access : program_.accesses(op))
    operands.push_back(memory_.at(op.rank, access.slice));
  std::size_t taken = 0;
  for (const KernelCall& call : program_.calls(op)) {
    const auto mine = std::span{operands}.subspan(taken, call.operands);
    taken += call.operands;
    stream.scratch.used = stream.scratch.asked = 0;
    BlasHandle& blas = blas_[stream.device];
    if (blas == nullptr) blas = make_blas(stream.device);
    const auto more = [&](std::size_t bytes) { return streams_.take_scratch(stream, bytes); };
    start_call({stream.handle.get(), blas.get(), more}, call, mine);
  }
}

void CudaExecutor::Run::wait_for(OpId id) {
  if (!watch_.is_patient() && !watch_.has_more(events_.count_over()))
    throw DeviceError(fmt::format("{} has not ended, and nothing else has for {} ms",
                                  program_.describe(id), options_.patience.count()));
}

void CudaExecutor::Run::finish() {
  if (graph_.is_made()) {
    while (!graph_.is_over())
      if (!watch_.is_patient())
        throw DeviceError(
            fmt::format("the step's graph has not ended for {} ms", options_.patience.count()));
    return;
  }
  for (std::size_t i = 0; i < program_.size();) {
    const auto id = static_cast<OpId>(i);
    if (events_.is_over(id)) {
      watch_.see_progress();
      ++i;
    } else {
      wait_for(id);
    }
  }
}

Timeline CudaExecutor::Run::timeline() {
  Timeline timeline;
  timeline.spans =
      records_ == nullptr ? events_.spans() : recorded_spans(program_, streams_.table(), *records_);
  keep_served_order(program_, served_, timeline);
  if (options_.processes && records_ == nullptr)
    share_spans(program_, *options_.processes, events_.clocks_began(), timeline.spans);
  for (const Timeline::Span& span : timeline.spans)
    timeline.makespan = std::max(timeline.makespan, span.end);
  timeline.events = program_.size();
  return timeline;
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
  ASSERT(program.folded.empty());
  if (program_ != &program) {
    run_ = nullptr;  // first: its memory, and CUPTI, which has one reader
    run_ = std::make_unique<Run>(program, memory_, options_);
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
