// What must hold of every simulated program, whatever it does: checked here by other means than the
// engine's own run-time checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/engine/paths.hpp"
#include "tests/support/random_program.hpp"

namespace rehearse::engine_test {
namespace {

struct Case {
  Topology topology;
  Program program;
  Timeline timeline;
  std::vector<Time> latency;  // by connection

  const Timeline::Span& span(OpId id) const { return timeline.spans[index(id)]; }
  /// When the op after this one on its stream may begin: a latency before what is posted ends.
  Time stream_free(OpId id) const {
    const Program::Op& op = program[id];
    if (op.kind != WorkKind::transfer) return span(id).end;
    const ConnectionId way = program.transfer(op).connection;
    return span(id).end - (program[way].posted ? latency[index(way)] : Time{});
  }
};

Case simulate(std::uint64_t seed) {
  Draw draw{seed};
  Case out;
  out.topology = random_topology(draw);
  out.program = random_program(draw, out.topology);
  Routing routing{out.topology};
  const Roofline cost;
  out.timeline = FastSimulator(routing, cost).run(out.program);
  const Paths paths{out.program, routing};
  for (std::size_t c = 0; c < paths.size(); ++c)
    out.latency.push_back(paths.latency(static_cast<ConnectionId>(c)));
  return out;
}

class EngineProperty : public testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr std::uint64_t seeds = 100;
  template <class Check>
  void for_each_case(Check check) {
    for (std::uint64_t seed = GetParam() * seeds; seed < (GetParam() + 1) * seeds; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      check(simulate(seed));
      if (HasFatalFailure()) return;
    }
  }
};

TEST_P(EngineProperty, AnOpBeginsExactlyWhenItsLastCauseLetsIt) {
  for_each_case([](const Case& c) {
    std::map<std::pair<Rank, Stream>, OpId> last;
    for (std::size_t i = 0; i < c.program.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      const Program::Op& op = c.program[id];
      if (is_queue(op.stream)) continue;          // tests/property/queue_test.cpp
      std::vector<std::pair<OpId, Time>> causes;  // and when each lets it go
      for (const OpId input : c.program.after(id)) causes.emplace_back(input, c.span(input).end);
      if (const auto found = last.find({op.rank, op.stream}); found != last.end())
        causes.emplace_back(found->second, c.stream_free(found->second));
      last[{op.rank, op.stream}] = id;
      Time ready;
      for (const auto& [cause, when] : causes) ready = std::max(ready, when);
      ASSERT_EQ(c.span(id).begin, ready) << c.program.describe(id);
      if (causes.empty()) {
        ASSERT_EQ(c.span(id).blocker, no_op);
      } else {
        ASSERT_NE(std::find(causes.begin(), causes.end(), std::pair{c.span(id).blocker, ready}),
                  causes.end());
      }
    }
  });
}

TEST_P(EngineProperty, TheCriticalPathIsTheMakespan) {
  for_each_case([](const Case& c) {
    const std::vector<OpId> path = critical_path(c.timeline);
    ASSERT_FALSE(path.empty());
    Time sum;
    for (std::size_t i = 0; i < path.size(); ++i) {
      ASSERT_EQ(c.span(path[i]).begin, sum);
      const bool by_stream =
          i + 1 < path.size() && wait_of(c.program, c.timeline, path[i + 1]) == Wait::stream;
      sum += (by_stream ? c.stream_free(path[i]) : c.span(path[i]).end) - c.span(path[i]).begin;
    }
    ASSERT_EQ(sum, c.timeline.makespan);
  });
}

TEST_P(EngineProperty, TransfersOfAConnectionArriveInTheOrderOfTheirStream) {
  for_each_case([](const Case& c) {
    std::map<std::tuple<Rank, Stream, ConnectionId>, Time> arrived;
    for (std::size_t i = 0; i < c.program.size(); ++i) {
      const Program::Op& op = c.program.ops()[i];
      if (op.kind != WorkKind::transfer || is_queue(op.stream)) continue;
      Time& before = arrived[{op.rank, op.stream, c.program.transfer(op).connection}];
      ASSERT_GE(c.timeline.spans[i].end, before) << c.program.describe(static_cast<OpId>(i));
      before = c.timeline.spans[i].end;
    }
  });
}

TEST_P(EngineProperty, BytesAreConservedAndNoLinkIsAboveItsCapacity) {
  for_each_case([](const Case& c) {
    Routing routing{c.topology};
    const Paths paths{c.program, routing};
    std::vector<std::int64_t> carried(c.topology.links().size(), 0);
    std::vector<std::pair<Time, Time>> busy(carried.size(), {Time::never(), Time{}});
    for (std::size_t i = 0; i < c.program.size(); ++i) {
      const Program::Op& op = c.program.ops()[i];
      if (op.kind != WorkKind::transfer) continue;
      const Transfer& transfer = c.program.transfer(op);
      for (const Paths::Crossing& crossing : paths.crossings(transfer.connection)) {
        const std::size_t l = index(crossing.link);
        carried[l] += transfer.wire.count();
        busy[l].first = std::min(busy[l].first, c.timeline.spans[i].begin);
        busy[l].second = std::max(busy[l].second, c.timeline.spans[i].end);
      }
    }
    for (std::size_t l = 0; l < carried.size(); ++l) {
      ASSERT_EQ(c.timeline.link_bytes[l].count(), carried[l]);
      if (carried[l] == 0) continue;
      // Between its first and its last transfer, not over the whole run: a tighter bound.
      const double time = (busy[l].second - busy[l].first).seconds().count() + 1e-11;
      const double rate = c.topology.links()[l].bandwidth.count();
      ASSERT_LE(static_cast<double>(carried[l]), rate * time * (1 + 1e-9) + 1) << "link " << l;
    }
  });
}

TEST_P(EngineProperty, NoTransferIsFasterThanAloneAndLossesAreTold) {
  for_each_case([](const Case& c) {
    Routing routing{c.topology};
    const Paths paths{c.program, routing};
    for (std::size_t i = 0; i < c.program.size(); ++i) {
      const Program::Op& op = c.program.ops()[i];
      if (op.kind != WorkKind::transfer) continue;
      const Transfer& transfer = c.program.transfer(op);
      const auto wire = static_cast<double>(transfer.wire.count());
      const double alone = paths.latency(transfer.connection).seconds().count() +
                           (wire > 0 ? wire / paths.rate_alone(transfer.connection).count() : 0);
      const Timeline::Span& span = c.timeline.spans[i];
      const double took = (span.end - span.begin).seconds().count();
      ASSERT_GE(took, alone * (1 - 1e-9) - 2e-12) << c.program.describe(static_cast<OpId>(i));
      const bool told = std::any_of(
          c.timeline.contentions.begin(), c.timeline.contentions.end(),
          [&](const Timeline::Contention& loss) { return loss.op == static_cast<OpId>(i); });
      ASSERT_EQ(told, took > alone + 1.5e-12) << took - alone;
    }
  });
}

TEST_P(EngineProperty, TheSameProgramGivesTheSameBytes) {
  for_each_case([seed = GetParam() * seeds](const Case& c) mutable {
    ASSERT_EQ(simulate(seed++).timeline, c.timeline);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineProperty, testing::Range<std::uint64_t>(0, 5));

}  // namespace
}  // namespace rehearse::engine_test
