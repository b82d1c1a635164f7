// Of each stream here the last part that comes before an op: the ones before it on the stream are
// over by then, too.
#include "kernels/cuda/cuda_processes.hpp"

#include <algorithm>
#include <cstring>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

CudaPredecessors::CudaPredecessors(const Program& program, CudaStreams& streams) {
  for (const Program::Op& op : program.ops()) {
    if (is_queue(op.stream))
      throw InputError("queues of parameter servers are for one process with all GPUs");
    for (const CudaStream* stream : streams.all_of(op)) numbers_.emplace(stream, numbers_.size());
  }
  const std::size_t count = numbers_.size();
  before_.assign(program.size() * count, nobody);
  waited_.assign(count * count, nobody);
  std::vector<std::int32_t> last(streams.table().size(), nobody);  // by stream of any process
  for (std::size_t i = 0; i < program.size(); ++i) {
    const std::span<std::int32_t> mine = std::span{before_}.subspan(i * count, count);
    const auto come_after = [&](std::size_t other) {
      for (std::size_t stream = 0; stream < count; ++stream)
        mine[stream] = std::max(mine[stream], before_[other * count + stream]);
      for (const CudaStream* stream : streams.all_of(program.ops()[other])) {
        std::int32_t& latest = mine[numbers_.at(stream)];
        latest = std::max(latest, static_cast<std::int32_t>(other));
      }
    };
    const Program::Op& op = program.ops()[i];
    for (const OpId input : program.after(static_cast<OpId>(i))) come_after(index(input));
    for (const Rank rank : ranks_of(program, op)) {
      std::int32_t& previous = last[streams.table().number(rank, op.stream)];
      if (previous != nobody) come_after(static_cast<std::size_t>(previous));
      previous = static_cast<std::int32_t>(i);
    }
  }
}

std::vector<OpId> CudaPredecessors::missing(OpId id, const CudaStream& stream) {
  std::vector<OpId> ops;
  const std::size_t count = numbers_.size(), own = numbers_.at(&stream);
  for (std::size_t other = 0; other < count; ++other) {
    const std::int32_t latest = before_[index(id) * count + other];
    std::int32_t& waited = waited_[own * count + other];
    if (other == own || latest <= waited) continue;
    ops.push_back(static_cast<OpId>(latest));
    waited = latest;
  }
  return ops;
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
