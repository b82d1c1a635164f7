// Which ops may be put on their streams, and the loop that puts them there.
#include "kernels/cuda/cuda_queues.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

/// What has not been put on a stream yet, and what it waits for before it may be.
class NotStarted {
 public:
  NotStarted(const Program& program, const StreamTable& streams)
      : program_{program}, streams_{streams}, missing_(program.size()), next_(program.size()) {
    lanes_.resize(streams.size());
    for (std::size_t i = 0; i < program.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      for (const OpId input : program.after(id)) next_[index(input)].push_back(id);
      missing_[i] = program.after(id).size();
      if (is_queue(program[id].stream)) {
        if (missing_[i] == 0) ready_.push_back(id);
        continue;
      }
      for (const Rank rank : ranks_of(program, program[id]))
        lanes_[streams.number(rank, program[id].stream)].push_back(id);
    }
    left_ = program.size();
    for (const std::deque<OpId>& lane : lanes_)
      if (!lane.empty()) look_at(lane.front());
  }

  bool is_empty() const { return left_ == 0; }
  /// Ops that may be put on their streams now, those of queues among them; each is told once.
  std::vector<OpId> take_ready() { return std::exchange(ready_, {}); }
  void start(OpId id) {
    --left_;
    const Program::Op& op = program_[id];
    if (!is_queue(op.stream))
      for (const Rank rank : ranks_of(program_, op))
        lanes_[streams_.number(rank, op.stream)].pop_front();
    for (const OpId next : next_[index(id)])
      if (--missing_[index(next)] == 0) look_at(next);
    if (is_queue(op.stream)) return;
    for (const Rank rank : ranks_of(program_, op)) {
      const std::deque<OpId>& lane = lanes_[streams_.number(rank, op.stream)];
      if (!lane.empty()) look_at(lane.front());
    }
  }

 private:
  // On its streams, what comes before it must have been put there.
  void look_at(OpId id) {
    const Program::Op& op = program_[id];
    if (missing_[index(id)] > 0 || std::ranges::find(ready_, id) != ready_.end()) return;
    if (!is_queue(op.stream))
      for (const Rank rank : ranks_of(program_, op))
        if (lanes_[streams_.number(rank, op.stream)].front() != id) return;
    ready_.push_back(id);
  }

  const Program& program_;
  const StreamTable& streams_;
  std::vector<std::size_t> missing_;     // by op: inputs that are not started
  std::vector<std::vector<OpId>> next_;  // by op: who waits for it
  std::vector<std::deque<OpId>> lanes_;  // by stream: its ops, but of queues
  std::vector<OpId> ready_;
  std::size_t left_ = 0;
};

// Ops of queues whose inputs are over, and no longer in `arriving`. Those that were found at one
// look go by their events' times: those are within microseconds of each other on different devices.
std::vector<OpId> take_arrived(const Program& program, const CudaEvents& events,
                               std::vector<OpId>& arriving) {
  std::vector<std::pair<Time, OpId>> arrived;
  std::erase_if(arriving, [&](OpId id) {
    const auto inputs = program.after(id);
    if (!std::ranges::all_of(inputs, [&](OpId input) { return events.is_over(input); }))
      return false;
    Time last;
    for (const OpId input : inputs) last = std::max(last, events.end_of(input));
    arrived.emplace_back(last, id);
    return true;
  });
  std::ranges::sort(arrived);
  std::vector<OpId> ids;
  for (const auto& [time, id] : arrived) ids.push_back(id);
  return ids;
}

}  // namespace

std::vector<OpId> start_as_served(const Program& program, const StreamTable& streams,
                                  const CudaEvents& events, const std::function<void(OpId)>& start,
                                  const std::function<void(OpId)>& wait) {
  NotStarted rest{program, streams};
  std::vector<OpId> served, arriving;  // arriving: all inputs have been put on streams
  while (!rest.is_empty()) {
    std::vector<OpId> started;
    for (const OpId id : rest.take_ready()) {
      if (is_queue(program[id].stream)) {
        arriving.push_back(id);
      } else {
        start(id);
        started.push_back(id);
      }
    }
    for (const OpId id : take_arrived(program, events, arriving)) {
      start(id);
      started.push_back(id);
      served.push_back(id);
    }
    for (const OpId id : started) rest.start(id);
    ASSERT(!started.empty() || !arriving.empty());
    if (started.empty()) wait(arriving.front());
  }
  return served;
}

void keep_served_order(const Program& program, const std::vector<OpId>& served,
                       Timeline& timeline) {
  std::map<std::pair<Rank, Stream>, Time> least;  // when the next op of a queue may begin
  for (const OpId id : served) {
    const Program::Op& op = program[id];
    Time& begin = least[{op.rank, op.stream}];
    Timeline::Span& span = timeline.spans[index(id)];
    span.begin = std::max(span.begin, begin);
    span.end = std::max(span.end, span.begin);
    begin = span.begin + Time::picoseconds(1);
  }
}

}  // namespace rehearse
