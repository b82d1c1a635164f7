// Runs SimGrid in a child process: its engine is a singleton that seals its platform once per
// process, takes over signals and aborts on its own mistakes. The spans come back through memory
// that both processes share.
#include "sim/simgrid/simgrid_simulator.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "sim/base/error.hpp"
#include "sim/engine/alone.hpp"
#include "sim/engine/physics.hpp"
#include "sim/engine/totals.hpp"
#include "sim/program/deadlock.hpp"
#include "sim/simgrid/simgrid_run.hpp"

namespace rehearse {

namespace {

/// What the child leaves for its parent, followed by one span for each op.
struct Answer {
  bool is_complete = false;
  std::size_t finished = 0;
  char error[1024] = "";
};
static_assert(std::is_trivially_copyable_v<Timeline::Span>);
static_assert(sizeof(Answer) % alignof(Timeline::Span) == 0);

/// Memory that parent and child both see.
class SharedAnswer {
 public:
  explicit SharedAnswer(std::size_t ops)
      : ops_{ops},
        memory_{
            ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)} {
    if (memory_ == MAP_FAILED) throw std::bad_alloc{};
    new (memory_) Answer{};
  }
  ~SharedAnswer() { ::munmap(memory_, size()); }
  SharedAnswer(const SharedAnswer&) = delete;
  SharedAnswer& operator=(const SharedAnswer&) = delete;

  Answer& answer() { return *static_cast<Answer*>(memory_); }
  std::span<Timeline::Span> spans() {
    return {reinterpret_cast<Timeline::Span*>(static_cast<char*>(memory_) + sizeof(Answer)), ops_};
  }

 private:
  std::size_t size() const { return sizeof(Answer) + ops_ * sizeof(Timeline::Span); }
  std::size_t ops_;
  void* memory_;
};

std::vector<Time> compute_durations(const Program& program, const Alone& alone) {
  std::vector<Time> durations;
  for (const Program::Op& op : program.ops())
    if (op.kind == WorkKind::compute) durations.push_back(alone.compute(op));
  return durations;
}

/// Never returns to the caller's stack: the parent's open files are not the child's to flush.
template <class Work>
[[noreturn]] void run_in_child(SharedAnswer& shared, Work work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no orphan goes on computing for nobody
  Answer& answer = shared.answer();
  try {
    answer.finished = work();
    answer.is_complete = true;
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    text.copy(answer.error, std::min(text.size(), sizeof answer.error - 1));
  }
  ::_exit(0);
}

void wait_for(pid_t child, const Answer& answer) {
  int status = 0;
  while (::waitpid(child, &status, 0) == -1)
    if (errno != EINTR)
      throw DeviceError(fmt::format("lost the SimGrid process: {}", std::strerror(errno)));
  if (WIFSIGNALED(status))
    throw CheckFailed(fmt::format("SimGrid was ended by signal {} ({}){}", WTERMSIG(status),
                                  ::strsignal(WTERMSIG(status)),
                                  WTERMSIG(status) == SIGKILL ? "; out of memory?" : ""));
  if (answer.error[0] != '\0') throw CheckFailed(fmt::format("SimGrid: {}", answer.error));
  if (!answer.is_complete) throw CheckFailed("SimGrid stopped before its end");
}

}  // namespace

Timeline SimGridSimulator::run(const Program& program) {
  if (!program.folded.empty())
    throw InputError("the simgrid engine runs every transfer and takes no folded program");
  const Topology& topology = routing_.topology();
  const Paths paths{program, routing_};
  const std::vector<Time> durations =
      compute_durations(program, Alone{program, paths, topology, cost_});

  SharedAnswer shared{program.size()};
  std::fflush(nullptr);  // SimGrid flushes in the child what the parent has not yet written
  const pid_t child = ::fork();
  if (child == -1)
    throw DeviceError(fmt::format("cannot start a process for SimGrid: {}", std::strerror(errno)));
  if (child == 0)
    run_in_child(shared, [&] {
      return run_on_simgrid(program, paths, topology, durations, shared.spans());
    });
  wait_for(child, shared.answer());

  const std::span<const Timeline::Span> spans = shared.spans();
  if (shared.answer().finished < program.size()) {
    std::vector<bool> finished;
    for (const Timeline::Span& span : spans) finished.push_back(span.end != Time::never());
    throw CheckFailed(waiting_cycle(program, finished));
  }
  Timeline timeline;
  timeline.spans.assign(spans.begin(), spans.end());
  timeline.events = shared.answer().finished;
  add_up(program, paths, topology, timeline);
  check_physics(program, paths, topology, timeline);
  return timeline;
}

}  // namespace rehearse
