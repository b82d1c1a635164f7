// The text form of a Program: dumped, diffed, written by hand, loaded back.
//
//   rehearse program 1
//   protocol "LL128" overhead 1.9us payload 0.9375 limit 20GB/s
//   name "ring_all_reduce"
//   connection c0: 0 -> 1 channel 3 protocol 0 limit 12.5GB/s posted by_kernels
//   connection c1: multicast 0 -> 1,2,3            connection c2: switch_reduce 1,2,3 -> 0
//   fold c0: latency 3ns stands_for 16 links 4*1,7*2
//   op 0: rank 0 comm 0 transfer c0 sum 0[0,+512] -> 0[0,+512] wire 512 "ring_all_reduce" 4
//   op 1: rank 1 compute compute flops 1e9 fixed 2us reads 0[0,+512] after 0 "add"
//   op 2: rank 1 compute marker after 0,1 "done"
//   op 3: rank 0 comm 0 collective all_reduce group 0,1 data 0[0,+512] by ring protocol 1 "dp"
//   op 4: rank 1 compute compute flops 2e6 traffic 60000 gemm 100 50 200 batch 2 math bf16 "qkv"
//   op 5: rank 0 compute compute reads 0[0,+8] writes 1[0,+8] runs relu takes 2 "relu"
//   op 6: rank 2 queue 0 compute traffic 4096 after 0 "apply"
//
// One statement a line, `#` begins a comment. Ops and connections are named by any word and may be
// used before their line, so a program that waits in a circle can be written down. A slice is
// BUFFER[OFFSET,+SIZE]; sizes, offsets, wire and traffic are bytes; a gemm is its m, n and k. What
// is left out is zero (payload, stands_for and batch: one). What an op runs for real are kernels of
// sim/program/kernel_list.hpp, with sizes and numbers (zeros at their end are left out), and
// `narrow bf16 5` where operands 0 and 2 are stored in bf16. Transfers and collectives that sum say
// of what numbers (`sum of bf16`, `of bf16`; fp32 if nothing is said), and `max` where they take
// the maximum. A collective says `by` which algorithm it runs, once that is decided.
#pragma once

#include <string>
#include <string_view>

#include "sim/program/program.hpp"

namespace rehearse {

/// parse_program(to_text(p), …) == p.
std::string to_text(const Program& program);

/// Throws InputError with up to twenty problems, each with its place in `file`.
Program parse_program(std::string_view text, const std::string& file);

}  // namespace rehearse
