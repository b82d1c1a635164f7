// The executor by itself: any program that cannot race gives the bytes of a run in program order,
// on streams, queues and posted connections; paced computes wait; failures end the run.
#include "kernels/host/host_executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/program/kernel_list.hpp"
#include "sim/program/verify.hpp"
#include "tests/host/spans.hpp"
#include "tests/support/interpreter.hpp"
#include "tests/support/random_slices.hpp"
#include "topology/generators.hpp"

namespace rehearse::executor_test {
namespace {

constexpr std::size_t ranks = 4;

Stream random_stream(Draw& draw) {
  return draw.once_in(4) ? queue_lane(draw.below(2)) : static_cast<Stream>(draw.below(5));
}

ConnectionId random_way(Draw& draw, Program& program) {
  Connection way{.source = static_cast<Rank>(draw.below(ranks)),
                 .target = static_cast<Rank>(draw.below(ranks)),
                 .posted = draw.once_in(2)};
  if (draw.once_in(4)) {
    way.shape = Connection::Shape::multicast;
    way.others = {Rank{0}, Rank{2}, Rank{3}};
  }
  return program.connect(way);
}

/// Copies between small slices; whatever conflicts with an op before it waits for that.
Program random_copies(Draw& draw, std::size_t ops) {
  Program program;
  const Label label{program.name("copy")};
  while (program.size() < ops) {
    std::vector<OpId> after;
    if (draw.once_in(8)) {
      program.add_marker(static_cast<Rank>(draw.below(ranks)), random_stream(draw), label, after);
      continue;
    }
    const Bytes size{static_cast<std::int64_t>(draw.below(40))};
    const auto offset = [&] { return Bytes{static_cast<std::int64_t>(draw.below(64))}; };
    Transfer work{.connection = random_way(draw, program),
                  .source_buffer = static_cast<Buffer>(draw.below(2)),
                  .target_buffer = static_cast<Buffer>(2 + draw.below(2)),
                  .source_offset = offset(),
                  .target_offset = offset(),
                  .size = size,
                  .wire = size};
    if (draw.once_in(2)) std::swap(work.source_buffer, work.target_buffer);
    const OpId id = program.add_transfer(random_stream(draw), label, work, after);
    for (std::size_t i = 0; i < index(id); ++i)
      for (const Touch& mine : touches_of(program, id))
        for (const Touch& theirs : touches_of(program, static_cast<OpId>(i)))
          if (conflict(mine, theirs)) after.push_back(static_cast<OpId>(i));
    program.set_after(id, after);
  }
  return program;
}

// A thread for each worker, and workers that take turns on one, two or three threads.
TEST(HostExecutor, GivesTheBytesOfProgramOrder) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    Draw draw(seed);
    const Program program = random_copies(draw, 120);
    ASSERT_FALSE(verify(program)) << "seed " << seed;
    HostMemory memory(program);
    Interpreter numbers(program, Bytes{1});
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::uint32_t b = 0; b < 4; ++b) {
        const std::span<std::byte> bytes = memory.buffer(static_cast<Rank>(r), Buffer{b});
        auto& same = numbers.buffer(static_cast<Rank>(r), Buffer{b}, bytes.size());
        for (std::size_t i = 0; i < bytes.size(); ++i)
          bytes[i] = static_cast<std::byte>(same[i] = static_cast<std::int64_t>(draw.below(256)));
      }
    const std::size_t processors = seed % 4 == 0 ? ranks : seed % 4;
    expect_possible(program, HostExecutor(memory, {.processors = processors}).run(program));
    numbers.run();
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::uint32_t b = 0; b < 4; ++b) {
        const std::span<std::byte> bytes = memory.buffer(static_cast<Rank>(r), Buffer{b});
        for (std::size_t i = 0; i < bytes.size(); ++i)
          ASSERT_EQ(std::to_integer<int>(bytes[i]),
                    numbers.buffer(static_cast<Rank>(r), Buffer{b})[i])
              << "seed " << seed << ", rank " << r << ", buffer " << b << ", byte " << i;
      }
  }
}

TEST(HostExecutor, MissingEdgeIsCaughtByVerify) {
  Draw draw(5);
  std::size_t caught = 0;
  for (int round = 0; round < 20; ++round) {
    Program program = random_copies(draw, 40);
    ASSERT_FALSE(verify(program));
    for (std::size_t i = program.size(); i-- > 0;) program.set_after(static_cast<OpId>(i), {});
    caught += verify(program).has_value();
  }
  EXPECT_EQ(caught, 20U);
}

void expect_side_by_side(std::size_t processors) {
  Program program;
  const Label label{program.name("kernel")};
  const Time each = 3000_us;
  // Two streams and two ops of one queue: the streams side by side, the queue one by one.
  for (const Stream stream : {Stream::compute, Stream::copy, queue_lane(0), queue_lane(0)})
    program.add_compute(Rank{0}, stream, label, {.fixed = each}, {});
  program.add_compute(Rank{1}, Stream::compute, label, {.fixed = each}, {});
  HostMemory memory(program);
  const Topology machine = star(2, {50.0_GBps, 1_us});
  HostExecutor executor(memory, {.compute = HostCompute::paced,
                                 .pace = modelled_pace(program, machine, Roofline{}),
                                 .processors = processors});
  // A busy machine may let a thread begin late: not every time.
  bool are_side_by_side = false;
  for (int tries = 0; !are_side_by_side && tries < 100; ++tries) {
    const Timeline timeline = executor.run(program);
    expect_possible(program, timeline);
    for (const Timeline::Span& span : timeline.spans) EXPECT_GE(span.end - span.begin, each);
    EXPECT_GE(timeline.makespan, 2 * each);
    EXPECT_GE(timeline.spans[3].begin, timeline.spans[2].end);
    are_side_by_side = timeline.spans[1].begin < timeline.spans[0].end &&
                       timeline.spans[4].begin < timeline.spans[0].end;
  }
  EXPECT_TRUE(are_side_by_side);
}

TEST(HostExecutor, PacedComputesWaitSideBySide) { expect_side_by_side(2); }
TEST(HostExecutor, PacedComputesOfOneThreadWaitSideBySide) { expect_side_by_side(1); }

// With fewer processors than ranks there is a thread for each processor, and it is never idle while
// an op could run: a hundred products of each of four ranks on two threads, two at any time.
TEST(HostExecutor, RanksThatTakeTurnsKeepEveryThreadBusy) {
  Program program;
  const Label label{program.name("product")};
  KernelCall call{.kernel = Kernel::gemm, .operands = 3};
  call.sizes = {64, 64, 64, 0, 0, 0, 0, 0};
  call.numbers = {1, 0, 0, 0};
  std::vector<Access> accesses;
  for (std::uint32_t i = 0; i < 3; ++i)
    accesses.push_back({{Buffer{i}, Bytes{0}, Bytes{64 * 64 * 4}}, i == 2});
  for (std::size_t i = 0; i < 100; ++i)
    for (std::size_t r = 0; r < ranks; ++r)
      program.add_compute(static_cast<Rank>(r), Stream::compute, label, {}, {}, accesses,
                          std::array{call});
  HostMemory memory(program);
  HostExecutor executor(memory, {.processors = 2});
  // A busy machine may give the second thread its first turn when all is done: not every time.
  int most = 0;
  for (int tries = 0; most < 2 && tries < 100; ++tries) {
    const Timeline timeline = executor.run(program);
    expect_possible(program, timeline);
    std::vector<std::pair<Time, int>> changes;
    for (const Timeline::Span& span : timeline.spans) {
      changes.push_back({span.begin, 1});
      changes.push_back({span.end, -1});
    }
    std::sort(changes.begin(), changes.end());
    int now = 0;
    for (const auto& [time, change] : changes) most = std::max(most, now += change);
  }
  EXPECT_EQ(most, 2);
}

TEST(HostExecutor, NamesACircle) {
  Program program;
  const Label label{program.name("marker")};
  program.add_marker(Rank{0}, Stream::compute, label, {});
  program.add_marker(Rank{1}, Stream::compute, label, std::array{OpId{0}});
  program.set_after(OpId{0}, std::array{OpId{1}});
  HostMemory memory(program);
  EXPECT_THROW(HostExecutor(memory).run(program), CheckFailed);
}

void expect_stop(std::size_t processors) {
  Program program;
  const Label label{program.name("kernel")};
  OpId last = program.add_compute(Rank{0}, Stream::compute, label, {}, {});
  program.add_marker(Rank{1}, Stream::compute, label, std::array{last});
  HostMemory memory(program);
  const auto start = std::chrono::steady_clock::now();
  const auto since = [&] { return std::chrono::steady_clock::now() - start; };
  HostExecutor executor(memory, {.compute = HostCompute::paced,
                                 .pace = {60'000'000_us, Time{}},
                                 .processors = processors,
                                 .stop = [&] { return since() > std::chrono::milliseconds(20); }});
  EXPECT_THROW(executor.run(program), DeviceError);
  EXPECT_LT(since(), std::chrono::seconds(5));
}

TEST(HostExecutor, StopsWhenAsked) {
  for (const std::size_t processors : {1UL, 2UL}) expect_stop(processors);
}

}  // namespace
}  // namespace rehearse::executor_test
