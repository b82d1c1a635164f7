// One thread talks and keeps the books, another computes. MPI makes progress only while it is
// called, so the first never sleeps long; it makes room for the second when that is busy.
#include "kernels/mpi/mpi_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <thread>

#include "kernels/host/host_pin.hpp"
#include "kernels/host/host_work.hpp"
#include "kernels/mpi/compute_thread.hpp"
#include "kernels/mpi/mpi_collectives.hpp"
#include "kernels/mpi/mpi_messages.hpp"
#include "kernels/mpi/rest.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

using Clock = std::chrono::steady_clock;

class MpiRun {
 public:
  MpiRun(const MpiWorld& world, const Program& program, const MpiPlan& plan, HostMemory& memory,
         const HostOptions& options, MpiMessages& messages, MpiCollectives& collectives)
      : world_{world},
        program_{program},
        plan_{plan},
        options_{options},
        memory_{memory},
        messages_{messages},
        collectives_{collectives},
        rest_{world.shares_processors()},
        waits_{plan.waits},
        begins_(program.size(), -1),
        ends_(program.size(), -1),
        blockers_(program.size(), -1) {
    for (std::size_t i = 0; i < program.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      left_ += is_mine(id);
      to_come_ += !is_mine(id) && plan.seen_at(program, id) == world.rank();
      if (is_mine(id) && waits_[i] == 0) ready_.push_back(id);
    }
    if (options.compute == HostCompute::calls) computer_.emplace(program, memory);
  }

  Timeline run() {
    begin_together();
    while (left_ > 0 || to_come_ > 0 || !messages_.is_idle()) {
      bool busy = hear();
      busy = end_waits() || busy;
      busy = take_computed() || busy;
      busy = take_collected() || busy;
      for (; !ready_.empty(); busy = true) {
        const OpId id = ready_.front();
        ready_.pop_front();
        if (!must_queue(id)) begin(id);
      }
      busy ? rest_.after_work() : rest();
      world_.watch().look();
    }
    Timeline timeline = gather();
    world_.watch().expect_words(MpiWatch::between_runs);
    return timeline;
  }

 private:
  bool is_mine(OpId id) const { return program_[id].rank == world_.rank(); }
  std::int64_t now() const {
    return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count() - start_;
  }

  // The first rank names a moment a little ahead, in its own clock.
  void begin_together() {
    world_.barrier([this] { attend(); });
    world_.watch().expect_words(MpiWatch::in_a_run);
    const auto clock = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    std::vector<std::int64_t> start{world_.rank() == Rank{0} ? clock + 2'000'000 : INT64_MIN};
    world_.largest(start, [this] { attend(); });
    start_ = start.front() + world_.clock_ahead().ps() / 1000;
    while (now() < 0) rest_.once();
    // Somebody may have begun before this rank knew when.
    has_begun_ = true;
    for (const MpiMessages::News& news : early_) take_in(news);
  }

  bool hear() { return take_in(messages_.poll()); }

  bool take_in(const MpiMessages::News& news) {
    for (const OpId id : news.left) {
      --left_;
      if (plan_.frees_on_departure || is_posted(id)) pass_on(id, plan_.stream_next[index(id)]);
    }
    for (const OpId id : news.arrived) {
      --to_come_;
      ended(id);
    }
    for (const OpId id : news.told) told(id);
    return !news.is_empty();
  }

  bool is_posted(OpId id) const {
    return program_[program_.transfer(program_[id]).connection].posted;
  }

  // An op ended, and this rank is the first to know.
  void ended(OpId id) {
    ends_[index(id)] = now();
    std::vector<Rank> others;
    const auto pass = [&](OpId next) {
      const Rank rank = program_[next].rank;
      if (rank == world_.rank())
        pass_on(id, next);
      else if (std::find(others.begin(), others.end(), rank) == others.end())
        others.push_back(rank);
    };
    for (const OpId next : plan_.next(id)) pass(next);
    if (const OpId next = plan_.stream_next[index(id)]; next != no_op && !freed_before(id))
      pass(next);
    for (const Rank other : others) messages_.tell(other, id);
  }

  // Whether the stream of a transfer went on when its bytes left.
  bool freed_before(OpId id) const {
    if (program_[id].kind != WorkKind::transfer) return false;
    const Rank target = program_[program_.transfer(program_[id]).connection].target;
    return target != program_[id].rank && (plan_.frees_on_departure || is_posted(id));
  }

  void told(OpId id) {
    for (const OpId next : plan_.next(id))
      if (is_mine(next)) pass_on(id, next);
    if (is_mine(id) && !freed_before(id)) pass_on(id, plan_.stream_next[index(id)]);
  }

  void pass_on(OpId id, OpId next) {
    if (next == no_op || --waits_[index(next)] > 0) return;
    blockers_[index(next)] = static_cast<std::int64_t>(index(id));
    ready_.push_back(next);
  }

  void begin(OpId id) {
    const Program::Op& op = program_[id];
    begins_[index(id)] = now();
    if (collectives_.has(id)) return collectives_.begin(id);
    if (op.kind == WorkKind::transfer) {
      if (program_[program_.transfer(op).connection].target != op.rank) return messages_.send(id);
      run_transfer(program_, program_.transfer(op), memory_);
    } else if (op.kind == WorkKind::compute && options_.compute == HostCompute::paced) {
      const std::int64_t pace = options_.pace.at(index(id)).ps() / 1000;
      if (pace > 0) return pace_.push_back({begins_[index(id)] + pace, id});
    } else if (op.kind == WorkKind::compute && !program_.calls(op).empty()) {
      return computer_->give(id);
    }
    own_ended(id);
  }

  void own_ended(OpId id) {
    --left_;
    free_queue(id);
    ended(id);
  }

  // Paced or computed beside, two ops of a queue could run at once.
  bool must_queue(OpId id) {
    if (!is_queue(program_[id].stream) || program_[id].kind != WorkKind::compute) return false;
    const auto [queue, is_free] = queues_.try_emplace(program_[id].stream);
    if (!is_free) queue->second.push_back(id);
    return !is_free;
  }
  void free_queue(OpId id) {
    const auto queue = queues_.find(program_[id].stream);
    if (queue == queues_.end() || program_[id].kind != WorkKind::compute) return;
    ready_.insert(ready_.begin(), queue->second.begin(), queue->second.end());
    queues_.erase(queue);
  }

  bool end_waits() {
    bool any = false;
    for (std::size_t i = 0; i < pace_.size();) {
      if (pace_[i].first > now()) {
        ++i;
        continue;
      }
      const OpId id = pace_[i].second;
      pace_.erase(pace_.begin() + static_cast<std::ptrdiff_t>(i));
      own_ended(id);
      any = true;
    }
    return any;
  }

  bool take_computed() {
    if (!computer_) return false;
    const std::vector<OpId> done = computer_->take();
    for (const OpId id : done) own_ended(id);
    return !done.empty();
  }

  bool take_collected() {
    const std::vector<OpId> done = collectives_.poll();
    for (const OpId id : done) own_ended(id);
    return !done.empty();
  }

  // A collective of MPI goes on while MPI is called, one piece of it at a time.
  void rest() {
    if (computer_ && computer_->is_busy())
      Rest::nap();
    else if (!collectives_.is_idle())
      rest_.after_work(), rest_.once();
    else
      rest_.once();
  }

  void note_early(MpiMessages::News news) {
    if (!news.is_empty()) early_.push_back(std::move(news));
  }

  // While all wait for each other there is still news.
  void attend() {
    if (has_begun_)
      hear();
    else
      note_early(messages_.poll());
  }

  // What one rank alone knows is -1 everywhere else.
  Timeline gather() {
    for (std::vector<std::int64_t>* figures : {&begins_, &ends_, &blockers_})
      world_.largest(*figures, [this] { attend(); });
    Timeline timeline;
    timeline.spans.resize(program_.size());
    for (std::size_t i = 0; i < program_.size(); ++i) {
      const std::int64_t begin = std::max<std::int64_t>(begins_[i], 0);
      Timeline::Span& span = timeline.spans[i];
      span.begin = Time::picoseconds(1000 * begin);
      span.end = Time::picoseconds(1000 * std::max(begin, ends_[i]));
      if (blockers_[i] >= 0) span.blocker = static_cast<OpId>(blockers_[i]);
      timeline.makespan = std::max(timeline.makespan, span.end);
    }
    timeline.events = program_.size();
    return timeline;
  }

  const MpiWorld& world_;
  const Program& program_;
  const MpiPlan& plan_;
  const HostOptions& options_;
  HostMemory& memory_;
  MpiMessages& messages_;
  MpiCollectives& collectives_;
  Rest rest_;
  std::optional<ComputeThread> computer_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::int64_t> begins_, ends_, blockers_;  // by op; nanoseconds
  std::deque<OpId> ready_;
  std::vector<std::pair<std::int64_t, OpId>> pace_;  // until when
  std::map<Stream, std::deque<OpId>> queues_;        // busy ones, and what waits behind
  std::size_t left_ = 0, to_come_ = 0;               // own ops, and arrivals
  std::int64_t start_ = 0;
  bool has_begun_ = false;
  std::vector<MpiMessages::News> early_;
};

}  // namespace

MpiExecutor::MpiExecutor(const MpiWorld& world, const Program& program, HostMemory& memory,
                         HostOptions options)
    : world_{world},
      program_{program},
      memory_{memory},
      options_{std::move(options)},
      plan_{program},
      messages_{std::make_unique<MpiMessages>(world, program, memory)},
      collectives_{std::make_unique<MpiCollectives>(world, program, options_.parts, memory)} {
  if (rank_count(program) > world.size())
    throw InputError(fmt::format("the program has {} ranks, and mpirun started {}",
                                 rank_count(program), world.size()));
  sharpen_timers();
  world.watch().stop_when(options_.stop);
}

MpiExecutor::~MpiExecutor() { world_.watch().stop_when({}); }

Timeline MpiExecutor::run(const Program& program) {
  ASSERT(&program == &program_);
  return MpiRun(world_, program_, plan_, memory_, options_, *messages_, *collectives_).run();
}

}  // namespace rehearse
