// Queues on GPUs: first come, first served. A CUDA stream runs what was put on it first, so that
// who comes first is the host's to see: it asks for the events of what a queue's ops wait for, and
// puts an op on its queue's stream once they are over.
//
//   worker 0  ──[push]──────────────●             ● asked by the host, which puts the serve behind
//   worker 1  ──[push]─────●         ╲              what it put there before
//   queue     ──────────────[serve 1]─[serve 0]──▶
//
// Every other op is put on its stream as soon as all that it waits for has been: events order the
// rest. Rejected: waiting on the device by a value in memory (cuStreamWaitValue): it can wait for
// one push, not for whichever comes first.
#include <algorithm>
#include <deque>
#include <utility>

#include "kernels/cuda/cuda_run.hpp"
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

}  // namespace

void CudaRun::start_as_served() {
  NotStarted rest{program_, streams_};
  served_.clear();
  std::vector<OpId> arriving;  // of queues: all inputs have been put on streams
  while (!rest.is_empty()) {
    std::vector<OpId> started;
    for (const OpId id : rest.take_ready()) {
      if (is_queue(program_[id].stream)) {
        arriving.push_back(id);
      } else {
        start_op(id);
        started.push_back(id);
      }
    }
    serve(arriving, started);
    for (const OpId id : started) rest.start(id);
    if (!started.empty())
      watch_.waited = {};
    else if (!is_patient())
      give_up_at(arriving.front());
    ASSERT(!started.empty() || !arriving.empty());
  }
}

// Those that were found at one look go by their events' times: those are within microseconds of
// each other on different devices.
void CudaRun::serve(std::vector<OpId>& arriving, std::vector<OpId>& started) {
  std::vector<std::pair<Time, OpId>> arrived;
  std::erase_if(arriving, [&](OpId id) {
    if (!std::ranges::all_of(program_.after(id), [&](OpId input) { return is_over(input); }))
      return false;
    Time last;
    for (const OpId input : program_.after(id))
      last = std::max(last, since_origin(input, moments_[index(input)].end));
    arrived.emplace_back(last, id);
    return true;
  });
  std::ranges::sort(arrived);
  for (const auto& [time, id] : arrived) {
    start_op(id);
    started.push_back(id);
    served_.push_back(id);
  }
}

// Events tell time in steps of half a microsecond: two ops of a queue may begin in the same one.
void CudaRun::keep_served_order(Timeline& timeline) const {
  std::map<std::uint32_t, Time> least;
  for (const OpId id : served_) {
    const Program::Op& op = program_[id];
    Time& begin = least[streams_.number(op.rank, op.stream)];
    Timeline::Span& span = timeline.spans[index(id)];
    span.begin = std::max(span.begin, begin);
    span.end = std::max(span.end, span.begin);
    begin = span.begin + Time::picoseconds(1);
  }
}

}  // namespace rehearse
