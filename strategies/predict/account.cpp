// One sweep over the moments at which something begins or ends on a rank.
#include "strategies/predict/account.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>

namespace rehearse {

Accounts::Accounts(const StepProgram& step, const Timeline& timeline)
    : step_{step}, timeline_{timeline}, days_(step.roles.size()) {
  constexpr auto nobody = UINT32_MAX;
  std::vector<std::uint32_t> role_of;  // by rank
  for (std::uint32_t r = 0; r < step.roles.size(); ++r) {
    const std::size_t rank = index(step.roles[r].rank);
    if (role_of.size() <= rank) role_of.resize(rank + 1, nobody);
    role_of[rank] = r;
  }
  const Program& program = step.program;
  std::uint32_t merged = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Op& op = program.ops()[i];
    Stretch stretch{timeline.spans[i].begin, timeline.spans[i].end, step.tags[i].dimension,
                    static_cast<OpId>(i)};
    if (merged < step.merged.size() && step.merged[merged].op == stretch.op)
      stretch.merged = merged++;
    if (stretch.begin == stretch.end) continue;
    if (op.kind != WorkKind::transfer) {
      days_[role_of[index(op.rank)]].computing.push_back(stretch);
      continue;
    }
    const Connection& way = program[program.transfer(op).connection];
    const auto note = [&](Rank rank) {
      days_[role_of[index(rank)]].communicating.push_back(stretch);
    };
    if (way.others.empty()) {
      note(way.source);
      if (way.target != way.source) note(way.target);
    }
    for (const Rank rank : way.others) note(rank);
  }
  for (Day& day : days_)
    std::stable_sort(day.communicating.begin(), day.communicating.end(),
                     [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
}

namespace {

// What a layer's own kernels wait for, whatever else goes on.
bool is_within_layers(Dimension dimension) {
  return dimension != Dimension::data && dimension != Dimension::pipeline;
}

}  // namespace

// Splits an idle gap among the communication that goes on in it: first to exchanges within layers,
// then to what the kernel after it waited for, then to what ends last.
void Accounts::account_gap(const Stretch& gap, OpId next, std::span<const Stretch> communicating,
                           std::size_t& first, TimeUse& use) const {
  while (first < communicating.size() && communicating[first].end <= gap.begin) ++first;
  std::vector<Stretch>& here = scratch_.here;
  here.clear();
  for (std::size_t i = first; i < communicating.size() && communicating[i].begin < gap.end; ++i) {
    Stretch part = communicating[i];
    part.begin = std::max(part.begin, gap.begin);
    part.end = std::min(part.end, gap.end);
    if (part.begin < part.end) here.push_back(part);
  }
  if (here.size() > 1) {
    const auto rank = [&](const Stretch& part) {
      if (is_within_layers(part.dimension)) return 0;
      return next != no_op && is_awaited(part.op, next) ? 1 : 2;
    };
    const auto end = [&](const Stretch& part) { return timeline_.spans[index(part.op)].end; };
    std::sort(here.begin(), here.end(), [&](const Stretch& a, const Stretch& b) {
      return std::tuple{rank(a), end(b), a.dimension} < std::tuple{rank(b), end(a), b.dimension};
    });
  }
  std::vector<Stretch>&free = scratch_.free, &left = scratch_.left;
  free.assign(1, gap);
  for (const Stretch& stretch : here) {
    left.clear();
    for (const Stretch& idle : free) {
      const Time from = std::max(idle.begin, stretch.begin), to = std::min(idle.end, stretch.end);
      if (from >= to) {
        left.push_back(idle);
        continue;
      }
      use.exposed[static_cast<std::size_t>(stretch.dimension)] += to - from;
      if (idle.begin < from) left.push_back({idle.begin, from});
      if (to < idle.end) left.push_back({to, idle.end});
    }
    std::swap(free, left);
    if (free.empty()) break;
  }
  for (const Stretch& idle : free) use.bubble += idle.end - idle.begin;
}

// All that ended just when the kernel could begin: of several that end together the engine names
// whichever it met last. Or what an exchange of its layer had waited for, if that came between: in
// a block the kernel waits for it itself.
bool Accounts::is_awaited(OpId op, OpId kernel) const {
  for (const OpId input : step_.program.after(kernel)) {
    if (timeline_.spans[index(input)].end != timeline_.spans[index(kernel)].begin) continue;
    if (input == op) return true;
    const OpTag& tag = step_.tags[index(input)];
    if (tag.communicates && is_within_layers(tag.dimension) && is_awaited(op, input)) return true;
  }
  return false;
}

TimeUse Accounts::time_use(std::size_t role, const TimeWindow& window) const {
  const Day& day = days_[role];
  const Time window_end = std::min(window.end, timeline_.makespan);
  TimeUse use;
  Time now = window.begin;
  std::size_t first = 0;
  OpId next = no_op;  // the first kernel after the window
  for (const Stretch& kernel : day.computing) {
    const Time begin = std::max(kernel.begin, window.begin), end = std::min(kernel.end, window_end);
    if (kernel.begin >= window_end && next == no_op) next = kernel.op;
    if (begin >= end) continue;
    if (begin > now) account_gap({now, begin}, kernel.op, day.communicating, first, use);
    use.compute += end - begin;
    now = end;
    if (kernel.merged == UINT32_MAX) continue;
    for (std::size_t d = 0; d < dimension_count; ++d) {
      const Time exchanged = step_.merged[kernel.merged].exchanged[d];
      use.exposed[d] += exchanged;
      use.compute = use.compute - exchanged;
    }
  }
  if (now < window_end) account_gap({now, window_end}, next, day.communicating, first, use);
  return use;
}

std::array<Time, dimension_count> Accounts::communication(std::size_t role,
                                                          const TimeWindow& window) const {
  std::array<Time, dimension_count> total{};
  for (const Stretch& stretch : days_[role].communicating) {
    const Time begin = std::max(stretch.begin, window.begin);
    const Time end = std::min(stretch.end, window.end);
    if (begin < end) total[static_cast<std::size_t>(stretch.dimension)] += end - begin;
  }
  for (const Stretch& stretch : days_[role].computing) {
    if (stretch.merged == UINT32_MAX || stretch.begin < window.begin || stretch.end > window.end)
      continue;
    for (std::size_t d = 0; d < dimension_count; ++d)
      total[d] +=
          step_.merged[stretch.merged].exchanged[d] + step_.merged[stretch.merged].hidden[d];
  }
  return total;
}

MemoryPeak memory_peak(const Timeline& timeline, const Role& role) {
  struct Moment {
    Time time;
    const MemoryChange* change;
  };
  std::vector<Moment> moments;
  moments.reserve(role.changes.size());
  for (const MemoryChange& change : role.changes) {
    const Timeline::Span& span = timeline.spans[index(change.op)];
    moments.push_back({change.at_end ? span.end : span.begin, &change});
  }
  // What goes at the same moment goes first: the next op begins after the one before has ended.
  const auto earlier = [](const Moment& a, const Moment& b) {
    if (a.time != b.time) return a.time < b.time;
    return a.change->bytes < Bytes{0} && b.change->bytes >= Bytes{0};
  };
  // One stream's are in order already.
  if (!std::is_sorted(moments.begin(), moments.end(), earlier))
    std::stable_sort(moments.begin(), moments.end(), earlier);
  MemoryUse now = role.at_rest;
  Bytes total = std::accumulate(now.begin(), now.end(), Bytes{});
  MemoryPeak peak{now, total, {}};
  for (const Moment& moment : moments) {
    now[static_cast<std::size_t>(moment.change->kind)] += moment.change->bytes;
    total += moment.change->bytes;
    if (total > peak.total) peak = {now, total, moment.time};
  }
  return peak;
}

}  // namespace rehearse
