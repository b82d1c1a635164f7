// Looks for the stretch of each pipeline rank, then compares its last rounds.
#include "strategies/predict/steady.hpp"

#include <algorithm>

namespace rehearse {

namespace {

// Ops wait for others less than one round away, in either direction, when a round goes round all
// ranks; where it is one micro-batch, one round back across neighbouring ranks and one more within
// a rank.
std::uint32_t rounds_compared(std::uint32_t advance) { return advance > 1 ? 2 : 3; }
// The last rounds may meet what follows the stretch on their links: the first reduction of
// gradients.
std::uint32_t rounds_skipped(std::uint32_t advance) { return advance > 1 ? 1 : 2; }

class RankRounds {
 public:
  RankRounds(std::span<const ActionOps> actions, const Timeline& timeline, std::uint32_t advance)
      : actions_{actions}, timeline_{timeline}, advance_{advance} {}

  /// How many actions a round has: those of `advance` micro-batches on this rank.
  std::uint32_t width() const {
    std::uint32_t actions = 0;
    for (const ActionOps& ops : actions_) actions += ops.action.microbatch < advance_;
    return actions;
  }

  /// The end of the longest stretch in which every action follows its like of the round before, or
  /// rather a little before it; 0 where it is too short to compare rounds that are `apart`.
  std::uint32_t stretch_end(std::uint32_t width, std::uint32_t apart) const {
    std::uint32_t best_end = 0, best = 0, run = 0;
    for (std::uint32_t i = width; i < actions_.size(); ++i) {
      run = is_next_round(i, width) ? run + 1 : 0;
      if (run > best) best = run, best_end = i + 1;
    }
    const std::uint32_t rounds = rounds_compared(advance_) + rounds_skipped(advance_) + apart - 1;
    if (best < rounds * width) return 0;
    return best_end - rounds_skipped(advance_) * width;
  }

  /// Whether the last rounds before `end` are `period` later, op by op, than those `distance`
  /// actions before them.
  bool repeats(std::uint32_t end, std::uint32_t width, std::uint32_t distance, Time period) const {
    for (std::uint32_t i = end - rounds_compared(advance_) * width; i < end; ++i)
      if (!is_later(actions_[i - distance], actions_[i], period)) return false;
    return true;
  }

  /// How many rounds before the compared ones are already like those `distance` actions before.
  std::uint32_t spare(std::uint32_t end, std::uint32_t width, std::uint32_t distance,
                      Time period) const {
    std::uint32_t actions = 0;
    for (std::uint32_t i = end - rounds_compared(advance_) * width; i-- > distance; ++actions)
      if (!is_next_round(i, width) || !is_later(actions_[i - distance], actions_[i], period)) break;
    return actions / width;
  }

  Time period(std::uint32_t end, std::uint32_t distance) const {
    return span(actions_[end - 1].begin).end - span(actions_[end - 1 - distance].begin).end;
  }

 private:
  const Timeline::Span& span(OpId id) const { return timeline_.spans[index(id)]; }

  bool is_next_round(std::uint32_t i, std::uint32_t width) const {
    const ActionOps &now = actions_[i], &before = actions_[i - width];
    return now.action.stage == before.action.stage && now.action.kind == before.action.kind &&
           now.action.microbatch == before.action.microbatch + advance_ &&
           index(now.end) - index(now.begin) == index(before.end) - index(before.begin);
  }

  bool is_later(const ActionOps& before, const ActionOps& now, Time period) const {
    for (std::size_t k = 0; k < index(now.end) - index(now.begin); ++k) {
      const Timeline::Span& a = timeline_.spans[index(before.begin) + k];
      const Timeline::Span& b = timeline_.spans[index(now.begin) + k];
      if (b.begin - a.begin != period || b.end - a.end != period) return false;
    }
    return true;
  }

  std::span<const ActionOps> actions_;
  const Timeline& timeline_;
  std::uint32_t advance_;
};

// Rounds that are `apart` from each other.
Settling compare_rounds(const StepProgram& step, const Timeline& timeline, std::uint32_t advance,
                        std::uint32_t apart) {
  const std::size_t ranks = step.actions.size();
  SteadyState steady{.period = {}, .advance = advance * apart, .rounds = {}};
  std::vector<Time> periods;
  std::uint32_t spare = UINT32_MAX;
  for (std::size_t r = 0; r < ranks; ++r) {
    const RankRounds rank(step.actions[r], timeline, advance);
    const std::uint32_t width = rank.width(), distance = apart * width;
    const std::uint32_t end = width == 0 ? 0 : rank.stretch_end(width, apart);
    if (end == 0) return {std::nullopt, ranks};
    const Time period = rank.period(end, distance);
    periods.push_back(rank.repeats(end, width, distance, period) ? period : Time{});
    spare = std::min(spare, rank.spare(end, width, distance, period));
    steady.period = std::max(steady.period, period);
    steady.rounds.push_back({end - distance, end});
  }
  const auto settled =
      static_cast<std::size_t>(std::count(periods.begin(), periods.end(), steady.period));
  if (settled < ranks) return {std::nullopt, settled};
  return {std::move(steady), settled, spare};
}

}  // namespace

Settling find_steady_state(const StepProgram& step, const Timeline& timeline,
                           std::uint32_t advance) {
  Settling each = compare_rounds(step, timeline, advance, 1);
  if (each.state || advance > 1) return each;
  // What goes down the pipeline and comes back does so in as many rounds as there are ranks.
  Settling all =
      compare_rounds(step, timeline, advance, static_cast<std::uint32_t>(step.actions.size()));
  return all.state ? all : each;
}

}  // namespace rehearse
