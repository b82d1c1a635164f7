// The activity API of CUPTI, by the names of its functions in a library that is loaded.
#include "kernels/cuda/cuda_records.hpp"

#include "sim/base/error.hpp"

#if __has_include(<cupti.h>)
#include <cupti.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace rehearse {

namespace {

/// What has come so far. CUPTI brings it on a thread of its own, and hands nothing through.
struct Heard {
  std::mutex guard;
  CUptiResult (*next)(std::uint8_t*, std::size_t, CUpti_Activity**) = nullptr;
  std::map<std::uint32_t, std::uint64_t> op_of;  // by correlation id
  std::vector<std::pair<std::uint32_t, CudaRecords::Span>> spans;
};
Heard& heard() {
  static Heard all;
  return all;
}

template <class Record>
void add_span(Heard& all, const CUpti_Activity* record) {
  const auto* it = reinterpret_cast<const Record*>(record);
  if (it->end > 0) all.spans.push_back({it->correlationId, {it->start, it->end}});
}

void add(Heard& all, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      return add_span<CUpti_ActivityKernel10>(all, record);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return add_span<CUpti_ActivityMemcpy6>(all, record);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return add_span<CUpti_ActivityMemcpyPtoP4>(all, record);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return add_span<CUpti_ActivityMemset4>(all, record);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto* it = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      if (it->externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
        all.op_of[it->correlationId] = it->externalId;
      return;
    }
    default:  // calls of the runtime and the driver, which only carry the ids
      return;
  }
}

void bring_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  constexpr std::size_t bytes = 1 << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, bytes));
  *size = *buffer != nullptr ? bytes : 0;
  *most_records = 0;
}

void read_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Heard& all = heard();
  {
    const std::lock_guard guard{all.guard};
    CUpti_Activity* record = nullptr;
    while (all.next(buffer, valid, &record) == CUPTI_SUCCESS) add(all, record);
  }
  std::free(buffer);
}

// Records with the op's number come with calls of the runtime and the driver (cuBLAS and NCCL use
// both), so that those must be recorded, too.
constexpr std::array kinds{
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};

}  // namespace

struct CudaRecords::Library {
  explicit Library(const std::string& name) : handle{dlopen(name.c_str(), RTLD_NOW)} {
    if (handle == nullptr) {
      const char* const reason = dlerror();
      throw DeviceError(fmt::format("CUPTI: {}", reason != nullptr ? reason : name));
    }
    load(enable, "cuptiActivityEnable");
    load(disable, "cuptiActivityDisable");
    load(register_callbacks, "cuptiActivityRegisterCallbacks");
    load(flush, "cuptiActivityFlushAll");
    load(next, "cuptiActivityGetNextRecord");
    load(push, "cuptiActivityPushExternalCorrelationId");
    load(pop, "cuptiActivityPopExternalCorrelationId");
    load(timestamp, "cuptiGetTimestamp");
    load(error_text, "cuptiGetResultString");
  }

  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) throw DeviceError(fmt::format("CUPTI: it has no {}", name));
  }
  void check(CUptiResult result, const char* call) const {
    if (result == CUPTI_SUCCESS) return;
    const char* text = "unknown error";
    error_text(result, &text);
    throw DeviceError(fmt::format("CUPTI: {}: {}", call, text));
  }

  void* handle;             // stays loaded: its thread may still run
  std::uint64_t begin = 0;  // of what is told
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetResultString) error_text = nullptr;
};

CudaRecords::CudaRecords(const std::string& library)
    : library_{std::make_unique<Library>(library)} {
  {
    Heard& all = heard();
    const std::lock_guard guard{all.guard};
    all.next = library_->next;
  }
  library_->check(library_->register_callbacks(bring_buffer, read_buffer),
                  "cuptiActivityRegisterCallbacks");
  for (const CUpti_ActivityKind kind : kinds)
    library_->check(library_->enable(kind), "cuptiActivityEnable");
}

CudaRecords::~CudaRecords() {
  for (const CUpti_ActivityKind kind : kinds) library_->disable(kind);
  library_->flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

void CudaRecords::restart() {
  take();
  library_->check(library_->timestamp(&library_->begin), "cuptiGetTimestamp");
}

void CudaRecords::push(OpId id) {
  library_->check(library_->push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, index(id)),
                  "cuptiActivityPushExternalCorrelationId");
}

void CudaRecords::pop() {
  std::uint64_t last = 0;
  library_->pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}

std::map<OpId, CudaRecords::Span> CudaRecords::take() {
  library_->check(library_->flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  Heard& all = heard();
  const std::lock_guard guard{all.guard};
  const auto since_begin = [&](std::uint64_t time) {
    return time - std::min(time, library_->begin);
  };
  std::map<OpId, Span> result;
  for (const auto& [correlation, span] : all.spans) {
    const auto op = all.op_of.find(correlation);
    if (op == all.op_of.end()) continue;
    Span& whole = result[static_cast<OpId>(op->second)];
    whole.begin = std::min(whole.begin, since_begin(span.begin));
    whole.end = std::max(whole.end, since_begin(span.end));
  }
  all.spans.clear();
  all.op_of.clear();
  return result;
}

}  // namespace rehearse

#else

namespace rehearse {

struct CudaRecords::Library {};

CudaRecords::CudaRecords(const std::string&) {
  throw DeviceError("CUPTI: this program was built where its headers were missing");
}
CudaRecords::~CudaRecords() = default;
void CudaRecords::restart() {}
void CudaRecords::push(OpId) {}
void CudaRecords::pop() {}
std::map<OpId, CudaRecords::Span> CudaRecords::take() { return {}; }

}  // namespace rehearse

#endif

namespace rehearse {

LargeVector<Timeline::Span> recorded_spans(const Program& program, const StreamTable& streams,
                                           CudaRecords& records) {
  const std::map<OpId, CudaRecords::Span> recorded = records.take();
  if (recorded.empty()) throw DeviceError("CUPTI has told of no kernel and no copy");
  const auto time = [](std::uint64_t ns) {
    return Time::picoseconds(1000 * static_cast<std::int64_t>(ns));
  };
  LargeVector<Timeline::Span> spans(program.size());
  std::vector<Time> stream_end(streams.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = program[id];
    Timeline::Span& span = spans[i];
    if (const auto at = recorded.find(id); at != recorded.end()) {
      span.begin = time(at->second.begin);
      span.end = time(at->second.end);
    } else {
      for (const OpId input : program.after(id))
        span.begin = std::max(span.begin, spans[index(input)].end);
      for (const Rank rank : ranks_of(program, op))
        span.begin = std::max(span.begin, stream_end[streams.number(rank, op.stream)]);
      span.end = span.begin;
    }
    for (const Rank rank : ranks_of(program, op)) {
      Time& last = stream_end[streams.number(rank, op.stream)];
      last = std::max(last, span.end);
    }
  }
  return spans;
}

}  // namespace rehearse
