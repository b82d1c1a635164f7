// Every collective by every algorithm, executed by threads on real memory: the exact result on
// every rank, whatever the machine, the number of ranks and the size.
#include <gtest/gtest.h>

#include "kernels/host/collective_check.hpp"
#include "kernels/host/host_executor.hpp"
#include "kernels/host/wrong_numbers.hpp"
#include "sim/program/send.hpp"
#include "sim/program/verify.hpp"
#include "strategies/collectives/decide.hpp"
#include "strategies/collectives/rehearsal.hpp"
#include "tests/host/spans.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse::collectives_test {
namespace {

struct Case {
  const Algorithm& how;
  CollectiveShape shape;
  CollectiveCheck check;
  std::size_t processors = 0;
};

Bytes bytes_of_data(const CollectiveCheck& check) {
  return static_cast<std::int64_t>(check.elements) * bytes_of(check.numbers);
}

void cover(HostMemory& memory, const CollectiveShape& shape, const CollectiveCheck& check) {
  for (const Rank rank : shape.group)
    for (const Buffer buffer : {Buffer{0}, Buffer{1}})
      memory.cover(rank, {buffer, Bytes{0}, check.room()});
}

std::size_t wrong_numbers(const Case& what, Program program) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    program.set_numbers(id, program.transfer(program[id]).combine, what.check.numbers);
  }
  HostMemory memory(program);
  cover(memory, what.shape, what.check);
  const auto data = [&](std::size_t p) { return memory.buffer(what.shape.group[p], Buffer{0}); };
  const auto result = [&](std::size_t p) { return memory.buffer(what.shape.group[p], Buffer{1}); };
  for (std::size_t p = 0; p < what.check.ranks; ++p) what.check.fill(p, data(p), result(p));
  const Timeline timeline = HostExecutor(memory, {.processors = what.processors}).run(program);
  expect_possible(program, timeline);
  std::size_t wrong = 0;
  for (std::size_t p = 0; p < what.check.ranks; ++p)
    wrong += what.check.wrong(p, data(p), result(p));
  return wrong;
}

/// How many collectives were run.
std::size_t run_all(const Topology& machine, std::size_t elements, Precision numbers,
                    std::size_t processors = 0) {
  Routing routing(machine);
  std::size_t done = 0;
  for (const CollectiveKind kind : collective_kinds())
    for (const Algorithm& how : algorithms()) {
      CollectiveShape shape{.kind = kind};
      for (std::size_t r = machine.rank_count(); r-- > 0;)
        shape.group.push_back(static_cast<Rank>(r));
      shape.root = static_cast<std::uint32_t>(elements % shape.group.size());
      if (shape.group.size() < 2 || how.refusal(shape, machine)) continue;
      const Case what{
          how, shape, {kind, shape.group.size(), shape.root, elements, numbers}, processors};
      const CollectiveRehearsal rehearsal(how, shape, routing, Detail::transfers);
      EXPECT_EQ(wrong_numbers(what, rehearsal.program(bytes_of_data(what.check))), 0U)
          << how.name << " " << to_string(kind) << ", " << shape.group.size() << " ranks, "
          << elements << " elements";
      ++done;
    }
  return done;
}

TEST(HostCollectives, GiveTheExactResult) {
  const Cable cable{50.0_GBps, 1_us};
  std::size_t done = 0;
  for (const std::size_t elements : {1UL, 7UL, 1021UL, 30'011UL})
    for (const std::size_t ranks : {2UL, 3UL, 5UL, 8UL})
      done += run_all(star(ranks, cable, true), elements, Precision::fp32);
  done += run_all(ring(4, cable), 4099, Precision::fp32);
  done += run_all(load_cluster("dgx-h100", {2, 3}), 4099, Precision::fp32);
  done += run_all(load_cluster("dgx-h100", {4, 2}), 997, Precision::fp32);
  EXPECT_GT(done, 250U);
}

TEST(HostCollectives, OfRanksThatTakeTurns) {
  for (const std::size_t processors : {1UL, 2UL, 3UL})
    EXPECT_GT(run_all(star(5, {50.0_GBps, 1_us}, true), 1021, Precision::fp32, processors), 10U);
}

TEST(HostCollectives, SumNarrowNumbers) {
  const Topology machine = star(4, {50.0_GBps, 1_us}, true);
  EXPECT_GT(run_all(machine, 4096, Precision::fp16), 10U);
  EXPECT_GT(run_all(machine, 4096, Precision::bf16), 10U);
}

// Below zero, where neither a sum nor memory that nobody wrote is as large.
TEST(HostCollectives, TakeMaximaByEveryAlgorithmAndInTheSwitch) {
  const Topology machine = star(5, {50.0_GBps, 1_us}, true);
  Routing routing(machine);
  Collective work{.kind = CollectiveKind::all_reduce,
                  .data = {Buffer{0}, Bytes{0}, Bytes{4 * 101}},
                  .combine = Combine::max};
  CollectiveShape shape{.kind = work.kind};
  for (std::uint32_t rank = 0; rank < 5; ++rank) shape.group.push_back(static_cast<Rank>(rank));
  work.group = shape.group;
  Program whole;
  whole.add_collective(Stream::comm, {whole.name("maxima")}, work, {});
  std::size_t in_switch = 0;
  for (const Algorithm& how : algorithms()) {
    if (how.refusal(shape, machine)) continue;
    SCOPED_TRACE(how.name);
    const Program program =
        expand_collectives(whole, routing, {.algorithm = std::string(how.name)});
    for (const Connection& way : program.connections())
      in_switch += way.shape == Connection::Shape::switch_reduce ? 1 : 0;
    HostMemory memory(program);
    const auto numbers = [&](Rank rank) {
      const std::span<std::byte> bytes = memory.at(rank, work.data);
      return std::span{reinterpret_cast<float*>(bytes.data()), bytes.size() / 4};
    };
    std::vector<float> wanted(101, -1000);
    for (const Rank rank : shape.group)
      for (std::size_t i = 0; i < 101; ++i) {
        numbers(rank)[i] = -1 - static_cast<float>((index(rank) * 37 + i * 11) % 64);
        wanted[i] = std::max(wanted[i], numbers(rank)[i]);
      }
    HostExecutor(memory).run(program);
    for (const Rank rank : shape.group)
      EXPECT_TRUE(std::ranges::equal(numbers(rank), wanted)) << index(rank);
  }
  EXPECT_GT(in_switch, 0U);
}

TEST(CollectiveCheck, FindsEveryWrongNumber) {
  const Topology machine = star(4, {50.0_GBps, 1_us});
  Routing routing(machine);
  for (const CollectiveKind kind : collective_kinds()) {
    const CollectiveShape shape{.kind = kind, .group = {Rank{0}, Rank{1}, Rank{2}, Rank{3}}};
    const CollectiveCheck check{kind, 4, 0, 1024, Precision::fp32};
    const auto how = std::find_if(algorithms().begin(), algorithms().end(),
                                  [&](const auto& a) { return !a.refusal(shape, machine); });
    ASSERT_NE(how, algorithms().end());
    const Program program =
        CollectiveRehearsal(*how, shape, routing, Detail::transfers).program(4_KiB);
    HostMemory memory(program);
    cover(memory, shape, check);
    const auto data = [&](std::size_t p) { return memory.buffer(shape.group[p], Buffer{0}); };
    const auto result = [&](std::size_t p) { return memory.buffer(shape.group[p], Buffer{1}); };
    for (std::size_t p = 0; p < 4; ++p) check.fill(p, data(p), result(p));
    std::size_t wrong_before = 0;
    for (std::size_t p = 0; p < 4; ++p) wrong_before += check.wrong(p, data(p), result(p));
    EXPECT_GT(wrong_before, 200U) << to_string(kind);
    HostExecutor(memory).run(program);
    ASSERT_EQ(check.wrong(0, data(0), result(0)), 0U) << to_string(kind);
    // Element 256 lies in a block that rank 0 receives, or in its own sum.
    const std::size_t at = kind == CollectiveKind::reduce_scatter ? 5 : 4 * 256;
    const bool fills_result =
        kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv;
    const auto where = fills_result ? result(0) : data(0);
    where[at + 3] ^= std::byte{0x40};
    EXPECT_EQ(check.wrong(0, data(0), result(0)), 1U) << to_string(kind);
  }
}

// Two ranks: one adds what the other has, and sends the sum back.
Program by_hand(Combine there, bool waits) {
  Program program;
  const Label label{program.name("by hand")};
  const Slice data{Buffer{0}, Bytes{0}, Bytes{4 * 100}};
  const OpId added = send(program, label, {Rank{0}, Rank{1}, data, there}, {});
  const std::array<OpId, 1> inputs{added};
  send(program, label, {Rank{1}, Rank{0}, data},
       waits ? std::span<const OpId>{inputs} : std::span<const OpId>{});
  return program;
}

TEST(WrongNumbers, AreFoundInProgramsWrittenByHand) {
  const CollectiveCheck check{CollectiveKind::all_reduce, 2, 0, 100, Precision::fp32};
  EXPECT_EQ(wrong_numbers(by_hand(Combine::sum, true), check), 0U);
  EXPECT_FALSE(verify(by_hand(Combine::sum, true)));
  EXPECT_GT(wrong_numbers(by_hand(Combine::overwrite, true), check), 100U);
  EXPECT_TRUE(verify(by_hand(Combine::sum, false)));
}

}  // namespace
}  // namespace rehearse::collectives_test
