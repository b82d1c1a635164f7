// The text form of a Program: what it looks like, that it comes back, and how mistakes are told.
#include "sim/program/program_text.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sim/base/error.hpp"
#include "sim/program/kernel_list.hpp"
#include "sim/program/verify.hpp"
#include "tests/support/random_slices.hpp"

namespace rehearse::program_text_test {
namespace {

constexpr std::string_view example = R"(rehearse program 1
protocol "LL128" overhead 1.9us payload 0.9375 limit 20GB/s
name "ring_all_reduce"
name "b"
connection c0: 0 -> 1 channel 3
connection c1: multicast 0 -> 1,2,3 channel 1 posted
connection c2: switch_reduce 1,2 -> 0
op 0: rank 0 comm 0 transfer c0 sum 0[0,+512] -> 1[64,+512] wire 576 "ring_all_reduce" 4
op 1: rank 1 compute compute flops 0.5 traffic 7 fixed 2us reads 0[0,+8] writes 1[8,+8] after 0 "b"
op 2: rank 0 comm 12 transfer c2 0[0,+0] -> 0[0,+0] wire 0 after 0,1 "ring_all_reduce" 5
op 3: rank 1 copy marker after 2 "b"
op 4: rank 2 comm 0 collective all_to_all group 2,0,1 data 0[0,+12] result 1[0,+12] "b"
op 5: rank 0 compute compute flops 12 traffic 9 gemm 1 2 3 batch 4 math bf16 fixed 1ns "b"
op 6: rank 0 compute compute gemm 5 6 7 "b"
op 7: rank 0 compute compute math fp8 "b"
op 8: rank 2 queue 3 compute traffic 5 after 0,7 "b"
op 9: rank 0 compute compute reads 0[0,+8] writes 1[0,+16] runs relu takes 2 narrow bf16 1 "b"
op 10: rank 0 compute compute reads 0[0,+8] writes 1[0,+8] writes 0[0,+4] runs scale takes 2 )"
                                     R"(numbers -0.5 runs zero takes 1 sizes 0,7 after 9 "b"
op 11: rank 0 comm 0 collective all_reduce group 0,1 data 0[0,+12] max of bf16 "b"
op 12: rank 0 comm 0 transfer c0 max of fp16 0[0,+4] -> 0[0,+4] wire 4 "b"
)";

TEST(ProgramText, ReadsAndWritesTheExample) {
  const Program program = parse_program(example, "example");
  EXPECT_EQ(program.size(), 13u);
  EXPECT_EQ(program[OpId{8}].stream, queue_lane(3));
  EXPECT_TRUE(program.has_queues());
  EXPECT_EQ(program.protocols.at(0).overhead, Time::picoseconds(1'900'000));
  EXPECT_EQ(program.connections()[1].others.size(), 3u);
  EXPECT_FALSE(program.connections()[0].posted);
  EXPECT_TRUE(program.connections()[1].posted);
  const Transfer& first = program.transfer(program[OpId{0}]);
  EXPECT_EQ(first.target(), (Slice{Buffer{1}, 64_B, 512_B}));
  EXPECT_EQ(first.combine, Combine::sum);
  EXPECT_EQ(program[OpId{2}].stream, comm_lane(12));
  EXPECT_EQ(program.label(OpId{2}), "ring_all_reduce 5");
  EXPECT_EQ(program.after(OpId{2}).size(), 2u);
  const Compute& product = program.compute(program[OpId{5}]);
  EXPECT_EQ(product.gemm, (Gemm{1, 2, 3, 4}));
  EXPECT_EQ(product.math, Precision::bf16);
  EXPECT_TRUE(program.calls(program[OpId{8}]).empty());
  EXPECT_EQ(program.calls(program[OpId{9}])[0].narrow_operands, 1);
  const std::span<const KernelCall> calls = program.calls(program[OpId{10}]);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].kernel, Kernel::scale);
  EXPECT_EQ(calls[0].numbers[0], -0.5);
  EXPECT_EQ(calls[1].sizes[1], 7);
  EXPECT_EQ(program.collective(program[OpId{11}]).combine, Combine::max);
  EXPECT_EQ(program.transfer(program[OpId{12}]).numbers, Precision::fp16);
  EXPECT_EQ(to_text(program), example);
}

TEST(ProgramText, WhatIsBoundLaterIsTheSameProgram) {
  Program bound;
  const std::uint32_t name = bound.name("b");
  const OpId first = bound.add_compute(Rank{0}, Stream::compute, {name}, {}, {});
  const OpId second = bound.add_compute(Rank{0}, Stream::compute, {name}, {}, {});
  const std::array accesses{Access{{Buffer{0}, 0_B, 8_B}, false},
                            Access{{Buffer{1}, 0_B, 8_B}, true}};
  const std::array calls{KernelCall{.kernel = Kernel::relu, .operands = 2}};
  bound.bind_compute(first, {}, {});
  bound.bind_compute(second, accesses, calls);
  EXPECT_EQ(parse_program(to_text(bound), "text"), bound);
  EXPECT_TRUE(bound.calls(bound[first]).empty());
  EXPECT_EQ(bound.calls(bound[second])[0], calls[0]);
}

TEST(ProgramText, WordsCommentsAndForwardEdgesAreWelcome) {
  const Program program = parse_program(
      "# two ops that wait for each other\n\nrehearse program 1\r\n"
      "op first: rank 0 compute marker after second \"a\"   # forward\n"
      "op second: rank 1 compute marker after first \"b\"\n",
      "circle");
  EXPECT_EQ(program.after(OpId{0})[0], OpId{1});
  EXPECT_THROW(verify(program), CheckFailed);
  EXPECT_EQ(structural_problems(program, {2, 0}).size(), 1u);
}

TEST(ProgramText, RandomProgramsComeBackEqual) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Draw draw{seed};
    const Program program = random_sliced_program(draw, seed % 2 == 0);
    const std::string text = to_text(program);
    const Program back = parse_program(text, "text");
    ASSERT_EQ(back, program) << "seed " << seed << "\n" << text;
    ASSERT_EQ(to_text(back), text) << "seed " << seed;
  }
}

std::string errors_of(std::string_view body) {
  try {
    parse_program("rehearse program 1\n" + std::string{body}, "f");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

struct Mistake {
  std::string_view body, message;
};

class ProgramTextMistake : public testing::TestWithParam<Mistake> {};

TEST_P(ProgramTextMistake, IsNamedWithItsPlace) {
  EXPECT_EQ(errors_of(GetParam().body), GetParam().message);
}

constexpr std::string_view way = "connection c: 0 -> 1\n";

const std::array mistakes{
    Mistake{"opp 1: rank 0", "f:2:1: error: unknown statement 'opp'; did you mean 'op'?"},
    Mistake{"op 1 rank 0", "f:2:6: error: expected ':', not 'rank'"},
    Mistake{"op 1: rank 0 compute sleep", "f:2:22: error: unknown kind of op 'sleep'"},
    Mistake{"op 1: rank 0 gpu marker", "f:2:14: error: expected 'comm', not 'gpu'"},
    Mistake{"op 1: rank 99999999 copy marker", "f:2:12: error: a rank may be at most 16777215"},
    Mistake{"op 1: rank 0 copy marker after 2", "f:2:32: error: there is no op '2'"},
    Mistake{"op 1: rank 0 copy marker\nop 1: rank 0 copy marker",
            "f:3:4: error: op '1' is defined twice"},
    Mistake{"op 1: rank 0 copy marker \"a", "f:2:26: error: the quote is never closed"},
    Mistake{"op 1: rank 0 copy marker \"\\q\"",
            "f:2:27: error: unknown escape; write \\\", \\\\ or \\xHH"},
    Mistake{"op 1: rank 0 copy marker \"a\" 1 2", "f:2:32: error: unexpected '2'"},
    Mistake{"op 1: rank 0 comm 0 transfer c 0[0,+1] -> 0[0,+1]",
            "f:2:30: error: there is no connection 'c'"},
    Mistake{"connection c: 0 -> 1\nop 1: rank 1 comm 0 transfer c 0[0,+1] -> 0[0,+1]",
            "f:3:30: error: this connection's transfers run on rank 0, not on rank 1"},
    Mistake{"connection c: 0 -> 1\nop 1: rank 0 comm 0 transfer c 0[0,+1] -> 0[0,+2]",
            "f:3:49: error: source and target differ in size"},
    Mistake{"connection c: 0 -> 1\nop 1: rank 0 comm 0 transfer c 0[0,+4] -> 0[0,+4] wire 3",
            "f:3:56: error: fewer bytes on the wire than in the slice"},
    Mistake{"connection c: 0 -> 1\nop 1: rank 0 comm 0 transfer c 0[-4,+4] -> 0[0,+4]",
            "f:3:34: error: expected an offset, not '-4'"},
    Mistake{"connection c: 0 - 1", "f:2:17: error: expected '->', not '-'"},
    Mistake{"connection c: 0 -> 1 protocol 1", "f:2:31: error: a protocol may be at most 0"},
    Mistake{"connection c: multicast 0 ->",
            "f:2:29: error: expected a rank, not the end of the line"},
    Mistake{"protocol \"p\" payload 2", "f:2:22: error: payload is in (0, 1]"},
    Mistake{"connection c: 0 -> 1\nconnection d: 0 -> 1\nfold c: links 0*1",
            "f: error: 1 of 2 connections have no 'fold'; fold all or none"},
    Mistake{"connection c: 0 -> 1\nfold c: links 0*0",
            "f:3:17: error: the number of copies must be at least 1"},
    Mistake{"connection c: 0 -> 1\nfold c: bursts 0 gap 1ns",
            "f:3:16: error: the number of bursts must be at least 1"},
    Mistake{"connection c: 0 -> 1\nfold c: bursts 2 links 0*1",
            "f:3:18: error: expected 'gap', not 'links'"},
    Mistake{"op 1: rank 0 compute compute flops nan",
            "f:2:36: error: expected an amount of work, not 'nan'"},
    Mistake{"op 1: rank 0 compute compute gemm 3 4",
            "f:2:38: error: expected the depth of a product, not the end of the line"},
    Mistake{"op 1: rank 0 compute compute gemm 3 0 4",
            "f:2:37: error: the columns of a product must be at least 1"},
    Mistake{"op 1: rank 0 compute compute gemm 3 4 5000000000",
            "f:2:39: error: the depth of a product may be at most 2147483648"},
    Mistake{"op 1: rank 0 compute compute gemm 3 4 5 batch 0",
            "f:2:47: error: a number of products must be at least 1"},
    Mistake{"op 1: rank 0 compute compute math bf17",
            "f:2:35: error: unknown precision 'bf17'; did you mean 'bf16'?"},
    Mistake{"op 1: rank 0 comm 0 collective allreduce group 0 data 0[0,+4]",
            "f:2:32: error: unknown collective 'allreduce'; did you mean 'all_reduce'?"},
    Mistake{"op 1: rank 0 comm 0 collective reduce group 0,1 data 0[0,+4] root 2",
            "f:2:67: error: a root may be at most 1"},
    Mistake{"op 1: rank 0 compute compute runs rely takes 2",
            "f:2:35: error: unknown kernel 'rely'; did you mean 'relu'?"},
    Mistake{"op 1: rank 0 compute compute runs relu takes 3",
            "f:2:46: error: relu takes 2 operands, not 3"},
    Mistake{"op 1: rank 0 compute compute reads 0[0,+4] runs relu takes 2",
            "f:2:60: error: the kernels take 2 operands, and the op has 1"},
    Mistake{"op 1: rank 0 compute compute writes 0[0,+4] reads 0[0,+4] runs relu takes 2",
            "f:2:75: error: relu only reads its operand 1"},
    Mistake{"op 1: rank 0 compute compute writes 0[0,+4] runs zero takes 1 numbers inf",
            "f:2:71: error: expected a number, not 'inf'"},
    Mistake{"name \"a\"\nname \"a\"", "f:3:6: error: this name is listed twice"},
    Mistake{std::string_view{"op \0", 4}, "f:2:4: error: expected the op's name, not byte \\x00"},
};

INSTANTIATE_TEST_SUITE_P(All, ProgramTextMistake, testing::ValuesIn(mistakes));

TEST(ProgramText, AllMistakesAtOnceButNoMoreThanTwenty) {
  EXPECT_EQ(errors_of("op 1: rank x copy marker\nop 2: rank 0 copy marker after 9\n"),
            "f:2:12: error: expected a rank, not 'x'\nf:3:32: error: there is no op '9'");
  std::string many;
  for (int i = 0; i < 50; ++i) many += "nonsense\n";
  const std::string errors = errors_of(many);
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 19);
}

TEST(ProgramText, AnythingElseIsNotAProgram) {
  EXPECT_THROW(parse_program("", "f"), InputError);
  EXPECT_THROW(parse_program("\n# nothing\n", "f"), InputError);
  EXPECT_THROW(parse_program("rehearse program 2\n", "f"), InputError);
  EXPECT_THROW(parse_program("[cluster]\n", "f"), InputError);
}

TEST(ProgramText, SumsThatWouldOverflowAreRefused) {
  std::string text{way};
  for (int i = 0; i < 5000; ++i)
    text += "op o" + std::to_string(i) +
            ": rank 0 comm 0 transfer c 0[0,+1125899906842624] -> 0[0,+1125899906842624]\n";
  EXPECT_NE(errors_of(text).find("the bytes of this program add up to too much"),
            std::string::npos);
}

}  // namespace
}  // namespace rehearse::program_text_test
