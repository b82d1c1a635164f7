// The race check and the structural check: what they accept, and what they name.
#include "sim/program/verify.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sim/base/error.hpp"

namespace rehearse::verify_test {
namespace {

// Two ranks, a connection each way, and short ways to add ops.
struct Pair {
  Program program;
  ConnectionId there = program.connect({.source = Rank{0}, .target = Rank{1}, .others = {}});
  ConnectionId back = program.connect({.source = Rank{1}, .target = Rank{0}, .others = {}});
  Label label{program.name("op"), Label::no_number};

  OpId send(ConnectionId way, std::int64_t from, std::int64_t to, std::int64_t size,
            std::vector<OpId> after = {}, Stream stream = Stream::comm,
            Combine combine = Combine::overwrite) {
    const Transfer work{.connection = way,
                        .combine = combine,
                        .source_offset = Bytes{from},
                        .target_offset = Bytes{to},
                        .size = Bytes{size},
                        .wire = Bytes{size}};
    return program.add_transfer(stream, label, work, after);
  }
  OpId compute(Rank rank, Slice slice, bool writes, std::vector<OpId> after = {}) {
    const std::array<Access, 1> accesses{Access{slice, writes}};
    return program.add_compute(rank, Stream::compute, label, {}, after, accesses);
  }
};

TEST(Verify, OrderedByEdgeStreamOrChainIsNoRace) {
  Pair pair;
  const OpId a = pair.send(pair.there, 0, 0, 64);
  const OpId b = pair.send(pair.back, 0, 0, 64, {a});  // edge: reads what a wrote
  const OpId c = pair.compute(Rank{0}, {Buffer{0}, {}, 64_B}, true, {b});
  pair.send(pair.there, 0, 64, 64, {c});  // after a, b and c by the chain
  EXPECT_EQ(verify(pair.program), std::nullopt);
}

TEST(Verify, NamesThePairAndTheBytes) {
  Pair pair;
  const OpId a = pair.send(pair.there, 0, 100, 64);
  const OpId b = pair.compute(Rank{1}, {Buffer{0}, 160_B, 64_B}, false);
  const std::optional<Race> race = verify(pair.program);
  ASSERT_TRUE(race);
  EXPECT_EQ(*race, (Race{a, b, true, false, Rank{1}, Buffer{0}, 160_B, 164_B}));
  EXPECT_EQ(describe(pair.program, *race),
            "op 0 'op' (rank 0, comm 0) writes and op 1 'op' (rank 1, compute) reads rank 1 "
            "buffer 0 [160, 164), in no certain order");
}

TEST(Verify, ReadersDoNotRaceButAWriterAmongThemDoes) {
  Pair pair;
  pair.compute(Rank{0}, {Buffer{0}, {}, 64_B}, false);
  pair.send(pair.there, 0, 0, 64);
  EXPECT_EQ(verify(pair.program), std::nullopt);
  pair.send(pair.back, 128, 32, 8);  // writes what both read
  const std::vector<Race> races = find_races(pair.program);
  ASSERT_EQ(races.size(), 2u);
  EXPECT_EQ(races[0].first, OpId{0});
  EXPECT_EQ(races[1].first, OpId{1});
  EXPECT_EQ(races[1].second, OpId{2});
  EXPECT_EQ(find_races(pair.program, 1).size(), 1u);
}

/// The pair with posted connections: there and back, and a second one there.
struct PostedPair : Pair {
  ConnectionId other;
  PostedPair() {
    there = program.connect({.source = Rank{0}, .target = Rank{1}, .posted = true, .others = {}});
    other = program.connect({.source = Rank{0}, .target = Rank{1}, .posted = true, .others = {}});
    back = program.connect({.source = Rank{1}, .target = Rank{0}, .posted = true, .others = {}});
  }
};

TEST(VerifyPosted, ArrivalsOfOneConnectionAreInOrder) {
  PostedPair pair;
  pair.send(pair.there, 0, 0, 64);
  const OpId last = pair.send(pair.there, 0, 0, 64);  // writes the same bytes, later
  pair.compute(Rank{1}, {Buffer{0}, {}, 64_B}, false, {last});
  EXPECT_EQ(verify(pair.program), std::nullopt);
}

TEST(VerifyPosted, ArrivalsOfTwoConnectionsAreNot) {
  PostedPair pair;
  const OpId a = pair.send(pair.there, 0, 0, 64);
  const OpId b = pair.send(pair.other, 0, 0, 64);
  const std::optional<Race> race = verify(pair.program);
  ASSERT_TRUE(race);
  EXPECT_EQ(*race, (Race{a, b, true, true, Rank{1}, Buffer{0}, 0_B, 64_B}));
}

TEST(VerifyPosted, NamingALaterOneOfAnotherConnectionSaysNothing) {
  PostedPair pair;
  const OpId a = pair.send(pair.there, 0, 0, 64);
  const OpId b = pair.send(pair.other, 64, 64, 64);
  const OpId reader = pair.compute(Rank{1}, {Buffer{0}, {}, 64_B}, false, {b});
  const std::optional<Race> race = verify(pair.program);
  ASSERT_TRUE(race);
  EXPECT_EQ(*race, (Race{a, reader, true, false, Rank{1}, Buffer{0}, 0_B, 64_B}));
  pair.program.set_after(reader, std::array{a, b});
  EXPECT_EQ(verify(pair.program), std::nullopt);
}

TEST(VerifyPosted, WhatHasLeftIsReadButNotThere) {
  PostedPair pair;
  const OpId sent = pair.send(pair.there, 0, 0, 64);
  // The next op of the stream may write what was sent from there,
  const std::array<Access, 1> source{Access{{Buffer{0}, {}, 64_B}, true}};
  const OpId next = pair.program.add_compute(Rank{0}, Stream::comm, pair.label, {}, {}, source);
  EXPECT_EQ(verify(pair.program), std::nullopt);
  // and whoever waits for that op only must not read where it goes to.
  const OpId reader = pair.compute(Rank{1}, {Buffer{0}, {}, 64_B}, false, {next});
  const std::optional<Race> race = verify(pair.program);
  ASSERT_TRUE(race);
  EXPECT_EQ(*race, (Race{sent, reader, true, false, Rank{1}, Buffer{0}, 0_B, 64_B}));
}

TEST(VerifyPosted, TheSameConnectionOnTwoStreamsIsInNoOrder) {
  PostedPair pair;
  pair.send(pair.there, 0, 0, 64, {}, comm_lane(0));
  pair.send(pair.there, 0, 0, 64, {}, comm_lane(1));
  EXPECT_TRUE(verify(pair.program));
}

TEST(VerifyPosted, ARankMustNotReadOnWhatItPostedToItself) {
  PostedPair pair;
  const ConnectionId self =
      pair.program.connect({.source = Rank{0}, .target = Rank{0}, .posted = true, .others = {}});
  const OpId a = pair.send(self, 0, 64, 64);
  const OpId b = pair.send(self, 64, 128, 64);  // leaves while the first is on its way
  ASSERT_TRUE(verify(pair.program));
  pair.program.set_after(b, std::array{a});
  EXPECT_EQ(verify(pair.program), std::nullopt);
}

TEST(Verify, TwoSumsIntoTheSameBytesRace) {
  Pair pair;
  pair.send(pair.there, 0, 0, 64, {}, comm_lane(0), Combine::sum);
  pair.send(pair.there, 0, 0, 64, {}, comm_lane(1), Combine::sum);
  EXPECT_TRUE(verify(pair.program));
}

TEST(Verify, OtherBuffersRanksAndEmptySlicesAreApart) {
  Pair pair;
  pair.send(pair.there, 0, 0, 64);
  pair.compute(Rank{1}, {Buffer{1}, {}, 64_B}, true);
  pair.compute(Rank{0}, {Buffer{0}, 64_B, 64_B}, true);
  pair.send(pair.back, 0, 0, 0);
  EXPECT_EQ(verify(pair.program), std::nullopt);
}

TEST(Verify, AMulticastWritesOnAllAndASwitchReduceReadsFromAll) {
  Program program;
  const Label label{program.name("nvls"), Label::no_number};
  const ConnectionId spread = program.connect(
      {.source = Rank{0}, .shape = Connection::Shape::multicast, .others = {Rank{1}, Rank{2}}});
  const ConnectionId gather = program.connect(
      {.target = Rank{0}, .shape = Connection::Shape::switch_reduce, .others = {Rank{1}, Rank{2}}});
  const auto transfer = [&](ConnectionId way, std::vector<OpId> after) {
    Transfer work{
        .connection = way, .source_offset = {}, .target_offset = {}, .size = 8_B, .wire = 8_B};
    return program.add_transfer(Stream::comm, label, work, after);
  };
  const OpId reduced = transfer(gather, {});
  const std::array<Access, 1> writes{Access{{Buffer{0}, {}, 8_B}, true}};
  program.add_compute(Rank{2}, Stream::compute, label, {}, std::array{reduced}, writes);
  EXPECT_EQ(verify(program), std::nullopt);
  transfer(spread, {});  // same stream as the reduction, but the compute of rank 2 is aside
  const std::optional<Race> race = verify(program);
  ASSERT_TRUE(race);
  EXPECT_EQ(race->rank, Rank{2});
  EXPECT_TRUE(race->first_writes && race->second_writes);
}

TEST(Verify, ACollectiveOccupiesTheStreamOfEveryMember) {
  Program program;
  const Label label{program.name("op"), Label::no_number};
  const Slice slice{Buffer{0}, {}, 64_B};
  const std::array<Access, 1> writes{Access{slice, true}};
  program.add_compute(Rank{1}, Stream::comm, label, {}, {}, writes);
  program.add_collective(Stream::comm, label,
                         {CollectiveKind::all_reduce, {Rank{0}, Rank{1}}, slice, {}, 0}, {});
  program.add_compute(Rank{0}, Stream::comm, label, {}, {}, writes);
  EXPECT_EQ(verify(program), std::nullopt);
  program.add_compute(Rank{1}, Stream::compute, label, {}, {}, writes);
  const std::optional<Race> race = verify(program);
  ASSERT_TRUE(race);
  EXPECT_EQ(race->first, OpId{1});
}

TEST(Verify, FollowsForwardEdgesAndNamesACycle) {
  Pair pair;
  pair.compute(Rank{1}, {Buffer{0}, {}, 64_B}, false);
  const OpId sender = pair.send(pair.there, 0, 0, 64);
  pair.program.set_after(OpId{0}, std::array{sender});
  EXPECT_EQ(verify(pair.program), std::nullopt);
  pair.program.set_after(sender, std::array{OpId{0}});
  try {
    verify(pair.program);
    FAIL() << "a cycle was accepted";
  } catch (const CheckFailed& failure) {
    EXPECT_STREQ(failure.what(),
                 "cannot finish: op 0 'op' (rank 1, compute) waits for op 1 'op' (rank 0, comm 0) "
                 "(edge) waits for op 0 (edge)");
  }
}

TEST(Verify, NamesACycleThroughTheStreamOfACollectivesOtherMember) {
  Program program;
  const Label label{program.name("op"), Label::no_number};
  program.add_collective(
      Stream::comm, label,
      {CollectiveKind::all_reduce, {Rank{0}, Rank{1}}, {Buffer{0}, {}, 64_B}, {}, 0}, {});
  const OpId behind = program.add_marker(Rank{1}, Stream::comm, label, {});
  program.set_after(OpId{0}, std::array{behind});
  EXPECT_THROW(verify(program), CheckFailed);
}

TEST(Verify, AWrittenRangeOverManyReadSegmentsIsCheckedInAllOfThem) {
  Pair pair;
  const OpId first = pair.compute(Rank{0}, {Buffer{0}, 0_B, 10_B}, false);
  pair.compute(Rank{0}, {Buffer{0}, 5_B, 10_B}, false);
  pair.compute(Rank{0}, {Buffer{0}, 40_B, 10_B}, false);
  pair.send(pair.back, 0, 0, 100, {first});  // ordered after the first reader only
  const std::vector<Race> races = find_races(pair.program);
  ASSERT_EQ(races.size(), 2u);
  EXPECT_EQ(races[0].begin, 5_B);
  EXPECT_EQ(races[0].end, 15_B);
  EXPECT_EQ(races[1].begin, 40_B);
}

TEST(Structure, AcceptsWhatTheBuildersBuild) {
  Pair pair;
  const OpId a = pair.send(pair.there, 0, 0, 64);
  pair.compute(Rank{1}, {Buffer{0}, {}, 64_B}, false, {a});
  EXPECT_TRUE(structural_problems(pair.program, {2, 0}).empty());
}

TEST(Structure, NamesWhatPointsNowhere) {
  Pair pair;
  pair.compute(Rank{7}, {Buffer{0}, {}, 64_B}, false);
  const OpId b = pair.send(pair.there, 0, 0, 64);
  pair.program.set_after(OpId{0}, std::array{b, OpId{0}});
  pair.program.folded = {{{{LinkId{9}, 1}}, {}, 1}, {}};
  const std::vector<std::string> expected{
      "connection c0 crosses link 9, but there are 4 links",
      "op 0 'op' (rank 7, compute) is on rank 7, but there are 2 ranks",
      "op 0 'op' (rank 7, compute) waits for op 1, which comes later",
      "op 0 'op' (rank 7, compute) waits for itself"};
  EXPECT_EQ(structural_problems(pair.program, {2, 4}), expected);
  EXPECT_EQ(structural_problems(pair.program, {2, 4}, 2).size(), 2u);
  EXPECT_EQ(structural_problems(pair.program, {2, 4, true}).size(), 3u) << "the later op is fine";
}

// A server's parameters, updated by whoever comes: exclusive, so no race; but who looks at them
// from outside must wait for all of them.
TEST(Verify, OpsOfOneQueueExcludeEachOtherAndOthersMustWaitForAll) {
  Pair pair;
  const std::array<Access, 1> update{Access{{Buffer{0}, {}, 64_B}, true}};
  const auto serve = [&](std::size_t queue, std::vector<OpId> after = {}) {
    return pair.program.add_compute(Rank{0}, queue_lane(queue), pair.label, {}, after, update);
  };
  const OpId first = serve(0), second = serve(0), third = serve(0, {first});
  EXPECT_EQ(verify(pair.program), std::nullopt);
  const Program updates = pair.program;
  pair.compute(Rank{0}, {Buffer{0}, {}, 64_B}, false, {third});
  const std::optional<Race> race = verify(pair.program);
  ASSERT_TRUE(race);
  EXPECT_EQ(race->first, second);  // the first is known by way of the third
  pair.program = updates;
  pair.compute(Rank{0}, {Buffer{0}, {}, 64_B}, false, {second, third});
  EXPECT_EQ(verify(pair.program), std::nullopt);
  pair.program = updates;
  serve(1, {second});  // another queue excludes nobody
  EXPECT_TRUE(verify(pair.program));
}

}  // namespace
}  // namespace rehearse::verify_test
