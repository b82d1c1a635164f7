// What the timeline of every real run must satisfy, whatever the machine was doing.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "sim/program/timeline.hpp"

namespace rehearse {

/// Nothing begins before its inputs end or before the op ahead of it on its stream; the chain of
/// blockers ends at time zero or thereabouts; the makespan is the last end.
inline void expect_possible(const Program& program, const Timeline& timeline) {
  ASSERT_EQ(timeline.spans.size(), program.size());
  std::map<std::pair<Rank, Stream>, OpId> last;
  Time makespan;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Timeline::Span& span = timeline.spans[i];
    ASSERT_LE(span.begin, span.end) << program.describe(id);
    makespan = std::max(makespan, span.end);
    for (const OpId input : program.after(id))
      ASSERT_GE(span.begin, timeline.spans[index(input)].end) << program.describe(id);
    if (is_queue(program[id].stream)) continue;
    const auto [before, is_first] = last.try_emplace({program[id].rank, program[id].stream}, id);
    if (!is_first) {
      ASSERT_GE(span.begin, timeline.spans[index(before->second)].end) << program.describe(id);
    }
    before->second = id;
  }
  EXPECT_EQ(timeline.makespan, makespan);
  const std::vector<OpId> path = critical_path(timeline);
  for (std::size_t i = 1; i < path.size(); ++i)
    ASSERT_LE(timeline.spans[index(path[i - 1])].end, timeline.spans[index(path[i])].begin);
}

}  // namespace rehearse
