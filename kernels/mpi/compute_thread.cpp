// Two mailboxes: what to do, and what is done.
#include "kernels/mpi/compute_thread.hpp"

#include "kernels/host/host_work.hpp"

namespace rehearse {

ComputeThread::ComputeThread(const Program& program, HostMemory& memory)
    : program_{program},
      memory_{memory},
      next_to_do_(program.size() + 1),
      next_done_(program.size()),
      thread_{[this] { work(); }} {}

ComputeThread::~ComputeThread() {
  stops_.store(true);
  to_do_.send(static_cast<std::uint32_t>(program_.size()), next_to_do_);  // only wakes
}

void ComputeThread::give(OpId op) {
  ++given_;
  to_do_.send(static_cast<std::uint32_t>(index(op)), next_to_do_);
}

std::vector<OpId> ComputeThread::take() {
  std::vector<OpId> ended;
  for (std::uint32_t item = done_.take(next_done_); item != Mailbox::nothing;
       item = next_done_[item])
    ended.push_back(static_cast<OpId>(item));
  taken_ += ended.size();
  if (!ended.empty() && failure_) std::rethrow_exception(failure_);
  return ended;
}

void ComputeThread::work() {
  while (!stops_.load()) {
    std::uint32_t item = to_do_.take(next_to_do_);
    if (item == Mailbox::nothing) {
      to_do_.sleep_until(Mailbox::Clock::now() + std::chrono::seconds(1));
      continue;
    }
    while (item != Mailbox::nothing && !stops_.load()) {
      const std::uint32_t following = next_to_do_[item];
      if (item < program_.size()) {
        try {
          run_compute(program_, program_[static_cast<OpId>(item)], memory_);
        } catch (...) {
          failure_ = std::current_exception();
          stops_.store(true);
        }
        done_.send(item, next_done_);
      }
      item = following;
    }
  }
}

}  // namespace rehearse
