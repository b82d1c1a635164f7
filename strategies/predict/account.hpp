// Where the time and the memory of a step went, role by role.
#pragma once

#include "sim/program/timeline.hpp"
#include "strategies/predict/prediction.hpp"

namespace rehearse {

/// A stretch of time; the whole step unless said otherwise.
struct TimeWindow {
  Time begin, end = Time::never();
};

/// What every role did when, sorted out once.
class Accounts {
 public:
  Accounts(const StepProgram& step, const Timeline& timeline);

  /// Of one role: every moment of the window is computing, communicating with nothing computing, or
  /// neither. Where several dimensions communicate at once, exchanges within layers count first (a
  /// block holds them and nothing else), then the one that the next kernel waits for, then the one
  /// that ends last.
  TimeUse time_use(std::size_t role, const TimeWindow& window) const;
  /// Time in communication of each dimension, hidden or not.
  std::array<Time, dimension_count> communication(std::size_t role, const TimeWindow& window) const;

 private:
  struct Stretch {
    Time begin, end;
    Dimension dimension{};
    OpId op = no_op;
    std::uint32_t merged = UINT32_MAX;  // which of the merged ops it is
  };
  struct Day {
    LargeVector<Stretch> computing, communicating;  // by begin
  };
  struct Scratch {  // of account_gap, to keep its memory
    std::vector<Stretch> here, free, left;
  };
  /// `next` is the kernel after the gap, if there is one.
  void account_gap(const Stretch& gap, OpId next, std::span<const Stretch> communicating,
                   std::size_t& first, TimeUse& use) const;
  bool is_awaited(OpId op, OpId kernel) const;

  const StepProgram& step_;
  const Timeline& timeline_;
  std::vector<Day> days_;  // by role
  mutable Scratch scratch_;
};

/// What a role holds when it holds most, and when that is.
struct MemoryPeak {
  MemoryUse use{};
  Bytes total;
  Time when;
};
MemoryPeak memory_peak(const Timeline& timeline, const Role& role);

}  // namespace rehearse
