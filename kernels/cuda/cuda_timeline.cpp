// Records count from the begin of the run; processes count from the first one's begin.
#include "kernels/cuda/cuda_timeline.hpp"

#include <algorithm>
#include <cstring>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

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

void share_spans(const Program& program, const CudaProcesses& processes,
                 std::chrono::nanoseconds clocks_began, LargeVector<Timeline::Span>& spans) {
  std::vector<std::int64_t> mine{1000 * clocks_began.count() - processes.clock_ahead.ps()};
  for (const Timeline::Span& span : spans) {
    const bool is_mine = span.begin != Time::never();
    mine.push_back(is_mine ? span.begin.ps() : -1);
    mine.push_back(is_mine ? span.end.ps() : -1);
  }
  std::vector<std::vector<std::int64_t>> all;
  std::int64_t first = INT64_MAX;
  const auto bytes = std::as_bytes(std::span{mine});
  for (const std::string& text :
       processes.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    std::vector<std::int64_t>& numbers = all.emplace_back(text.size() / sizeof(std::int64_t));
    ASSERT(numbers.size() == mine.size());
    std::memcpy(numbers.data(), text.data(), text.size());
    first = std::min(first, numbers[0]);
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Rank begins = ranks_of(program, program.ops()[i]).front();
    const std::vector<std::int64_t>& there = all[processes.of(begins)];
    spans[i].begin = Time::picoseconds(there[2 * i + 1] + there[0] - first);
    spans[i].end = spans[i].begin;
    for (const std::vector<std::int64_t>& each : all)
      if (each[2 * i + 2] >= 0)
        spans[i].end = std::max(spans[i].end, Time::picoseconds(each[2 * i + 2] + each[0] - first));
  }
}

}  // namespace rehearse
