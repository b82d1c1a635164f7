// Queues on random programs: never idle while somebody waits, and first come, first served. Checked
// against a server that is played again from the times at which ops became ready.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/engine/paths.hpp"
#include "tests/support/random_program.hpp"

namespace rehearse::queue_test {
namespace {

struct Request {
  OpId op{};
  Time ready, begin, free;
};
using Queues = std::map<std::pair<Rank, Stream>, std::vector<Request>>;

// Every queue's ops in the order in which they were served.
Queues queues_of(const Program& program, const Paths& paths, const Timeline& timeline) {
  Queues queues;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = program[id];
    if (!is_queue(op.stream)) continue;
    Request request{.op = id, .ready = {}, .begin = timeline.spans[i].begin, .free = {}};
    for (const OpId input : program.after(id))
      request.ready = std::max(request.ready, timeline.spans[index(input)].end);
    request.free = timeline.spans[i].end - flight_of(program, paths, op);
    queues[{op.rank, op.stream}].push_back(request);
  }
  for (auto& [where, requests] : queues)
    std::stable_sort(requests.begin(), requests.end(), [](const Request& a, const Request& b) {
      return std::tuple{a.begin, a.free, a.ready} < std::tuple{b.begin, b.free, b.ready};
    });
  return queues;
}

// Whether an op may have become ready in an instant only after others had been served in it.
bool was_let_go_late(const Program& program, const Timeline& timeline, OpId id, Time ready) {
  const auto inputs = program.after(id);
  return std::any_of(inputs.begin(), inputs.end(), [&](OpId input) {
    const Timeline::Span& span = timeline.spans[index(input)];
    return span.begin == ready && span.end == ready;
  });
}

TEST(QueueProperty, IsWorkConservingAndFirstComeFirstServed) {
  std::size_t waited = 0, overtook = 0, tied = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw{seed};
    const Topology topology = random_topology(draw);
    const Program program = random_program(draw, topology);
    if (!program.has_queues()) continue;
    Routing routing{topology};
    const Timeline timeline = FastSimulator(routing, Roofline{}).run(program);
    const Paths paths{program, routing};
    for (const auto& [where, requests] : queues_of(program, paths, timeline)) {
      Time free;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        const Request& now = requests[i];
        ASSERT_EQ(now.begin, std::max(now.ready, free)) << program.describe(now.op);
        const Wait wait = wait_of(program, timeline, now.op);
        ASSERT_EQ(wait == Wait::stream, now.ready < now.begin) << program.describe(now.op);
        free = now.free;
        waited += now.ready < now.begin;
        if (i == 0) continue;
        const Request& before = requests[i - 1];
        ASSERT_LE(before.ready, now.ready) << program.describe(now.op);
        overtook += before.op > now.op;
        if (before.ready != now.ready || was_let_go_late(program, timeline, now.op, now.ready))
          continue;
        ASSERT_LT(before.op, now.op);
        ++tied;
      }
    }
  }
  EXPECT_GT(waited, 500u);
  EXPECT_GT(overtook, 100u);
  EXPECT_GT(tied, 100u);
}

}  // namespace
}  // namespace rehearse::queue_test
