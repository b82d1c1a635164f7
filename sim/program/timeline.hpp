// What happened: when each op ran, what it waited for, what each link carried. Simulators fill it
// in virtual time, real executors in wall time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

enum class Wait : std::uint8_t { nothing, input, stream };

struct Timeline {
  struct Span {
    Time begin, end;
    /// Whose end let this op begin, or who freed its stream; no_op: it began at once.
    OpId blocker = no_op;
    friend bool operator==(const Span&, const Span&) = default;
  };
  /// A transfer that shared links: how much longer it took than alone, and which link held it last.
  struct Contention {
    OpId op{};
    Time lost;
    LinkId link = no_link;
    friend bool operator==(const Contention&, const Contention&) = default;
  };

  LargeVector<Span> spans;              // by OpId
  std::vector<Contention> contentions;  // by OpId, only those that lost time
  std::vector<Bytes> link_bytes;        // by LinkId; empty for a folded program
  std::uint64_t events = 0;
  Time makespan;

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// Why op `id` began no earlier.
Wait wait_of(const Program&, const Timeline&, OpId id);
/// The chain of ops, each let go by the one before, that ends with the last op to finish.
std::vector<OpId> critical_path(const Timeline&);
/// A hash over every span: equal timelines, equal fingerprints, on every machine.
std::uint64_t fingerprint(const Timeline&);

}  // namespace rehearse
