// One op at a time, and what its end lets go.
#include "kernels/host/host_worker.hpp"

#include <algorithm>

#include "kernels/host/host_work.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

OpProgress::OpProgress(const Program& program)
    : plan_{program},
      waits_{std::make_unique<std::atomic<std::uint32_t>[]>(program.size())},
      blockers_(program.size(), no_op) {
  for (std::size_t i = 0; i < program.size(); ++i)
    waits_[i].store(plan_.waits[i], std::memory_order_relaxed);
  timeline_.spans.resize(program.size());
}

OpProgress::Clock::time_point OpProgress::begin(OpId id, OpId before, Time free_since) {
  const auto now = Clock::now();
  timeline_.spans[index(id)].begin = since_start(now);
  // It was ready before its worker was: what the worker did before held it up.
  OpId& blocker = blockers_[index(id)];
  const Time ready = blocker == no_op ? Time{} : timeline_.spans[index(blocker)].end;
  if (before != no_op && ready < free_since) blocker = before;
  return now;
}

Time OpProgress::end(OpId id) { return timeline_.spans[index(id)].end = since_start(Clock::now()); }

bool OpProgress::release(OpId id, OpId input) {
  if (waits_[index(id)].fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  blockers_[index(id)] = input;
  return true;
}

Timeline OpProgress::take_timeline() {
  timeline_.events = blockers_.size();
  for (std::size_t i = 0; i < blockers_.size(); ++i) {
    timeline_.spans[i].blocker = blockers_[i];
    timeline_.makespan = std::max(timeline_.makespan, timeline_.spans[i].end);
  }
  return std::move(timeline_);
}

HostMail::HostMail(std::size_t ops, std::size_t workers)
    : ops_{ops},
      mailboxes_{std::make_unique<Mailbox[]>(workers)},
      next_(ops + workers, Mailbox::nothing) {}

void HostMail::send(std::uint32_t worker, OpId op, TaskPool::Seat* seat) {
  mailboxes_[worker].send(static_cast<std::uint32_t>(index(op)), next_);
  if (pool_ != nullptr) pool_->wake(worker, seat);
}

// An item beyond the ops only wakes.
void HostMail::wake(std::uint32_t worker) {
  send(worker, static_cast<OpId>(ops_ + worker), nullptr);
}

void HostMail::receive(std::uint32_t worker, std::deque<OpId>& ready) {
  for (std::uint32_t item = mailboxes_[worker].take(next_); item != Mailbox::nothing;) {
    const std::uint32_t following = next_[item];
    if (item < ops_) ready.push_back(static_cast<OpId>(item));
    item = following;
  }
}

HostWorker::HostWorker(std::uint32_t number, const Program& program, HostMemory& memory,
                       const HostOptions& options, OpProgress& progress, HostMail& mail)
    : program_{program},
      memory_{memory},
      options_{options},
      progress_{progress},
      mail_{mail},
      number_{number},
      left_{progress.plan().workers[number].ops} {}

HostWorker::Clock::time_point HostWorker::next_moment() const {
  return paced_.empty() ? Clock::time_point::max() : paced_.back().until;
}

bool HostWorker::step(TaskPool::Seat* seat) {
  mail_.receive(number_, ready_);
  bool any = false;
  for (; !paced_.empty() && paced_.back().until <= Clock::now(); any = true) {
    const OpId op = paced_.back().op;
    paced_.pop_back();
    finish(op, seat);
  }
  if (ready_.empty()) return any;
  const OpId op = ready_.front();
  ready_.pop_front();
  if (!must_queue(op)) begin(op, seat);
  return true;
}

void HostWorker::wait(int spins) {
  Mailbox& mailbox = mail_[number_];
  for (int i = 0; i < spins && paced_.empty(); ++i) {
    if (!mailbox.is_empty()) return;
    __builtin_ia32_pause();
  }
  mailbox.sleep_until(std::min(next_moment(), Clock::now() + std::chrono::seconds(1)));
}

// A worker that runs its ops serves a queue one by one anyway; one that only waits for them could
// begin the next.
bool HostWorker::must_queue(OpId id) {
  const Stream stream = program_[id].stream;
  if (!is_queue(stream) || options_.compute != HostCompute::paced) return false;
  const auto [queue, is_free] = busy_.try_emplace(stream);
  if (!is_free) queue->second.push_back(id);
  return !is_free;
}

void HostWorker::free_queue(OpId id) {
  const auto queue = busy_.find(program_[id].stream);
  if (queue == busy_.end()) return;
  const std::deque<OpId> waiting = std::move(queue->second);
  busy_.erase(queue);
  ready_.insert(ready_.begin(), waiting.begin(), waiting.end());
}

void HostWorker::begin(OpId id, TaskPool::Seat* seat) {
  const Program::Op& op = program_[id];
  const auto now = progress_.begin(id, before_, busy_until_);
  if (op.kind == WorkKind::compute && options_.compute == HostCompute::paced) {
    const auto pace = std::chrono::nanoseconds(options_.pace.at(index(id)).ps() / 1000);
    if (pace.count() == 0) return finish(id, seat);
    paced_.push_back({now + pace, id});
    std::sort(paced_.begin(), paced_.end(),
              [](const Paced& a, const Paced& b) { return a.until > b.until; });
    return;
  }
  if (op.kind == WorkKind::transfer)
    run_transfer(program_, program_.transfer(op), memory_);
  else if (op.kind == WorkKind::compute)
    run_compute(program_, op, memory_);
  finish(id, seat);
}

void HostWorker::finish(OpId id, TaskPool::Seat* seat) {
  before_ = id;
  busy_until_ = progress_.end(id);
  --left_;
  if (!busy_.empty()) free_queue(id);
  for (const OpId next : progress_.plan().next(id)) {
    if (!progress_.release(next, id)) continue;
    const std::uint32_t worker = progress_.plan().worker_of[index(next)];
    if (worker == number_)
      ready_.push_back(next);
    else
      mail_.send(worker, next, seat);
  }
}

}  // namespace rehearse
