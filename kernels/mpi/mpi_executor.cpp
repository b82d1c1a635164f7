// One thread talks and keeps the books, another computes. MPI makes progress only while it is
// called, so the first never sleeps long; it makes room for the second when that is busy.
#include "kernels/mpi/mpi_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
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

/// When this rank's ops ran, in nanoseconds of a clock that all ranks share.
class SharedTimes {
 public:
  explicit SharedTimes(std::size_t ops) : begins_(ops, -1), ends_(ops, -1), blockers_(ops, -1) {}

  void start_at(std::int64_t start) { start_ = start; }
  std::int64_t now() const {
    return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count() - start_;
  }
  std::int64_t begin(OpId id) { return begins_[index(id)] = now(); }
  void end(OpId id) { ends_[index(id)] = now(); }
  void block(OpId id, OpId by) { blockers_[index(id)] = static_cast<std::int64_t>(index(by)); }

  // What one rank alone knows is -1 everywhere else.
  Timeline gather(const MpiWorld& world, const std::function<void()>& attend) {
    for (std::vector<std::int64_t>* figures : {&begins_, &ends_, &blockers_})
      world.largest(*figures, attend);
    Timeline timeline;
    timeline.spans.resize(begins_.size());
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      const std::int64_t begin = std::max<std::int64_t>(begins_[i], 0);
      Timeline::Span& span = timeline.spans[i];
      span.begin = Time::picoseconds(1000 * begin);
      span.end = Time::picoseconds(1000 * std::max(begin, ends_[i]));
      if (blockers_[i] >= 0) span.blocker = static_cast<OpId>(blockers_[i]);
      timeline.makespan = std::max(timeline.makespan, span.end);
    }
    timeline.events = begins_.size();
    return timeline;
  }

 private:
  std::vector<std::int64_t> begins_, ends_, blockers_;  // by op
  std::int64_t start_ = 0;
};

/// The computes of this rank: beside the thread that talks, or only waited for.
class OwnComputes {
 public:
  OwnComputes(const Program& program, HostMemory& memory, const HostOptions& options)
      : program_{program}, options_{options} {
    if (options.compute == HostCompute::calls) thread_.emplace(program, memory);
  }

  // Paced or computed beside, two ops of a queue could run at once.
  bool must_queue(OpId id) {
    if (!is_queue(program_[id].stream) || program_[id].kind != WorkKind::compute) return false;
    const auto [queue, is_free] = queues_.try_emplace(program_[id].stream);
    if (!is_free) queue->second.push_back(id);
    return !is_free;
  }
  void free_queue(OpId id, std::deque<OpId>& ready) {
    const auto queue = queues_.find(program_[id].stream);
    if (queue == queues_.end() || program_[id].kind != WorkKind::compute) return;
    ready.insert(ready.begin(), queue->second.begin(), queue->second.end());
    queues_.erase(queue);
  }
  /// False: there is nothing to do, and it has ended.
  bool begin(OpId id, std::int64_t now) {
    if (options_.compute == HostCompute::paced) {
      const std::int64_t pace = options_.pace.at(index(id)).ps() / 1000;
      if (pace > 0) paced_.emplace_back(now + pace, id);
      return pace > 0;
    }
    const bool has_calls = !program_.calls(program_[id]).empty();
    if (has_calls) thread_->give(id);
    return has_calls;
  }
  std::vector<OpId> take_ended(std::int64_t now) {
    if (thread_) return thread_->take();
    std::vector<OpId> ended;
    std::erase_if(paced_, [&](const auto& each) {
      if (each.first <= now) ended.push_back(each.second);
      return each.first <= now;
    });
    return ended;
  }
  bool is_busy() const { return thread_ && thread_->is_busy(); }

 private:
  const Program& program_;
  const HostOptions& options_;
  std::optional<ComputeThread> thread_;               // none: paced
  std::vector<std::pair<std::int64_t, OpId>> paced_;  // until when
  std::map<Stream, std::deque<OpId>> queues_;         // busy ones, and what waits behind
};

class MpiRun {
 public:
  MpiRun(const MpiWorld& world, const Program& program, const MpiPlan& plan, HostMemory& memory,
         const HostOptions& options, MpiMessages& messages, MpiCollectives& collectives)
      : world_{world},
        program_{program},
        plan_{plan},
        memory_{memory},
        messages_{messages},
        collectives_{collectives},
        rest_{world.shares_processors()},
        times_{program.size()},
        computes_{program, memory, options},
        waits_{plan.waits} {
    for (std::size_t i = 0; i < program.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      left_ += is_mine(id);
      to_come_ += !is_mine(id) && plan.seen_at(program, id) == world.rank();
      if (is_mine(id) && waits_[i] == 0) ready_.push_back(id);
    }
  }

  Timeline run() {
    begin_together();
    while (left_ > 0 || to_come_ > 0 || !messages_.is_idle()) {
      bool busy = hear();
      busy = take_ended(computes_.take_ended(times_.now())) || busy;
      busy = take_ended(collectives_.poll()) || busy;
      for (; !ready_.empty(); busy = true) {
        const OpId id = ready_.front();
        ready_.pop_front();
        if (!computes_.must_queue(id)) begin(id);
      }
      busy ? rest_.after_work() : rest();
      world_.watch().look();
    }
    Timeline timeline = times_.gather(world_, [this] { attend(); });
    world_.watch().expect_words(MpiWatch::between_runs);
    return timeline;
  }

 private:
  bool is_mine(OpId id) const { return program_[id].rank == world_.rank(); }

  // The first rank names a moment a little ahead, in its own clock.
  void begin_together() {
    world_.barrier([this] { attend(); });
    world_.watch().expect_words(MpiWatch::in_a_run);
    const auto clock = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    std::vector<std::int64_t> start{world_.rank() == Rank{0} ? clock + 2'000'000 : INT64_MIN};
    world_.largest(start, [this] { attend(); });
    times_.start_at(start.front() + world_.clock_ahead().ps() / 1000);
    while (times_.now() < 0) rest_.once();
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
    times_.end(id);
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
    times_.block(next, id);
    ready_.push_back(next);
  }

  void begin(OpId id) {
    const Program::Op& op = program_[id];
    const std::int64_t now = times_.begin(id);
    if (collectives_.has(id)) return collectives_.begin(id);
    if (op.kind == WorkKind::transfer) {
      if (program_[program_.transfer(op).connection].target != op.rank) return messages_.send(id);
      run_transfer(program_, program_.transfer(op), memory_);
    }
    if (op.kind == WorkKind::compute && computes_.begin(id, now)) return;
    own_ended(id);
  }

  void own_ended(OpId id) {
    --left_;
    computes_.free_queue(id, ready_);
    ended(id);
  }

  bool take_ended(const std::vector<OpId>& ops) {
    for (const OpId id : ops) own_ended(id);
    return !ops.empty();
  }

  // A collective of MPI goes on while MPI is called, one piece of it at a time.
  void rest() {
    if (computes_.is_busy())
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

  const MpiWorld& world_;
  const Program& program_;
  const MpiPlan& plan_;
  HostMemory& memory_;
  MpiMessages& messages_;
  MpiCollectives& collectives_;
  Rest rest_;
  SharedTimes times_;
  OwnComputes computes_;
  std::vector<std::uint32_t> waits_;
  std::deque<OpId> ready_;
  std::size_t left_ = 0, to_come_ = 0;  // own ops, and arrivals
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
