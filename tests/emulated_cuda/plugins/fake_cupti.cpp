// Stands in for CUPTI's library: the part of its activity API that kernels/cuda/cuda_records.cpp
// calls, against CUPTI's own headers, with records of what the emulated machine did. Times are a
// long way from zero, and small buffers come back before the end, as CUPTI's do.
#include <cupti.h>
#include <dlfcn.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/emulated_cuda/activity.hpp"

namespace {

constexpr std::uint64_t long_ago = 1'000'000'000'000'000;

CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
std::set<CUpti_ActivityKind> enabled;
std::vector<std::uint64_t> external;                  // what was pushed; of one thread
std::map<std::uint64_t, CUpti_ActivityKind> kind_of;  // by work that has not run yet
std::vector<std::vector<std::uint8_t>> records;

bool is_wanted(CUpti_ActivityKind kind) { return enabled.contains(kind); }

template <class Record>
void keep(const Record& record) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  records.emplace_back(bytes, bytes + sizeof(Record));
}

void hand_over(std::size_t most) {
  while (!records.empty()) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, limit = 0, used = 0, count = 0;
    request(&buffer, &size, &limit);
    for (; count < records.size() && count < most && used + records[count].size() <= size;
         ++count) {
      std::memcpy(buffer + used, records[count].data(), records[count].size());
      used += records[count].size();
    }
    records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(count));
    complete(nullptr, 0, buffer, size, used);
  }
}

void submitted(std::uint64_t number, const char* what) {
  const std::string words = what;
  if (words.starts_with("the recording") || words.starts_with("a wait")) return;
  // Of a collective, the part that waits is the kernel.
  if (words.starts_with("nccl") && words.find("waiting") == words.npos) return;
  const CUpti_ActivityKind kind = words.starts_with("a copy") ? CUPTI_ACTIVITY_KIND_MEMCPY2
                                  : words.starts_with("a fill")
                                      ? CUPTI_ACTIVITY_KIND_MEMSET
                                      : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  if (is_wanted(kind)) kind_of[number] = kind;
  // As CUPTI: with calls of the runtime, and only if those are recorded.
  if (external.empty() || !is_wanted(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) ||
      !is_wanted(CUPTI_ACTIVITY_KIND_RUNTIME))
    return;
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  record.externalId = external.back();
  record.correlationId = static_cast<std::uint32_t>(number);
  keep(record);
}

template <class Record>
void keep_span(CUpti_ActivityKind kind, std::uint64_t number, int device, std::uint64_t begin,
               std::uint64_t end) {
  Record record{};
  record.kind = kind;
  record.deviceId = static_cast<std::uint32_t>(device);
  record.correlationId = static_cast<std::uint32_t>(number);
  record.start = long_ago + begin;
  record.end = long_ago + end;
  keep(record);
}

void ran(std::uint64_t number, int device, std::uint64_t begin, std::uint64_t end) {
  const auto at = kind_of.find(number);
  if (at == kind_of.end()) return;
  const CUpti_ActivityKind kind = at->second;
  kind_of.erase(at);
  if (kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
    keep_span<CUpti_ActivityMemcpyPtoP4>(kind, number, device, begin, end);
  else if (kind == CUPTI_ACTIVITY_KIND_MEMSET)
    keep_span<CUpti_ActivityMemset4>(kind, number, device, begin, end);
  else
    keep_span<CUpti_ActivityKernel10>(kind, number, device, begin, end);
  if (records.size() > 1000) hand_over(100);
}

constexpr emulated_cuda::ActivityListener listener{submitted, ran};

std::size_t size_of(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    default:
      return sizeof(CUpti_ActivityKernel10);
  }
}

}  // namespace

extern "C" {

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (request == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  enabled.insert(kind);
  emulated_cuda_listen(&listener);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  enabled.erase(kind);
  if (enabled.empty()) emulated_cuda_listen(nullptr);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  hand_over(100);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                       CUpti_Activity** record) {
  std::uint8_t* const next =
      *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + size_of(*record);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind,
                                                   std::uint64_t id) {
  external.push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind,
                                                  std::uint64_t* last) {
  if (external.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  *last = external.back();
  external.pop_back();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(std::uint64_t* now) {
  *now = long_ago + emulated_cuda_clock();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "an error";
  return CUPTI_SUCCESS;
}

}  // extern "C"
