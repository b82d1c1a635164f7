// Proves that no two ops race on the bytes of a buffer, or names the pair; and that every number in
// a Program points at something that exists.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

/// Two ops that touch the same bytes of one rank, at least one writing, in no certain order.
struct Race {
  OpId first{}, second{};
  bool first_writes = false, second_writes = false;
  Rank rank{};
  Buffer buffer{};
  Bytes begin, end;
  friend bool operator==(const Race&, const Race&) = default;
};

/// The first `most` races in program order; empty means that none is possible. Throws CheckFailed
/// when the program cannot finish at all. A folded program says nothing about the ranks that it
/// leaves out: verify the whole one.
std::vector<Race> find_races(const Program& program, std::size_t most = 20);
std::optional<Race> verify(const Program& program);

/// "op 7 'send' (rank 0, comm 0) reads and op 9 'recv' (rank 1, comm 0) writes rank 0 buffer 0
/// [0, 512), in no certain order"
std::string describe(const Program& program, const Race& race);

/// What a Program is checked against.
struct Surroundings {
  std::size_t ranks = 0, links = 0;  // of the machine
  bool forward_edges = false;        // accepted; whether they make a circle is another question
};

/// What an executor may rely on, in one line each: edges to earlier ops, ranks and links that the
/// machine has, known connections and protocols, sizes that are not negative.
std::vector<std::string> structural_problems(const Program& program, const Surroundings& around,
                                             std::size_t most = 20);

}  // namespace rehearse
