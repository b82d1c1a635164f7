// Each column shows the action that has most of it; an action wide enough carries its micro-batch's
// number.
#include "tools/predict/step_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace rehearse {

namespace {

constexpr std::size_t most_ranks = 16;

struct Bout {
  ActionKind kind{};
  std::uint32_t microbatch = 0;
  Time begin, end;
};

// What the first actor of a pipeline rank computes, action by action.
std::vector<Bout> bouts_of(const StepProgram& step, const Timeline& timeline, std::size_t place) {
  Rank rank{};
  for (auto role = step.roles.rbegin(); role != step.roles.rend(); ++role)
    if (role->pipeline_rank == place) rank = role->rank;
  std::vector<Bout> bouts;
  for (const ActionOps& action : step.actions[place]) {
    Bout bout{action.action.kind, action.action.microbatch, Time::never(), Time{}};
    for (std::size_t i = index(action.begin); i < index(action.end); ++i) {
      const Program::Op& op = step.program.ops()[i];
      if (op.rank != rank || op.kind != WorkKind::compute) continue;
      bout.begin = std::min(bout.begin, timeline.spans[i].begin);
      bout.end = std::max(bout.end, timeline.spans[i].end);
    }
    if (bout.begin < bout.end) bouts.push_back(bout);
  }
  return bouts;
}

std::string_view fill_of(ActionKind kind) {
  constexpr std::string_view fills[] = {"·", "▒", "░", "w"};
  return fills[static_cast<std::size_t>(kind)];
}

std::string row_of(const std::vector<Bout>& bouts, Time whole, std::size_t columns) {
  std::vector<std::string> cells(columns, " ");
  const auto column = [&](Time time) {
    return static_cast<std::size_t>(
        time.seconds().count() / whole.seconds().count() * static_cast<double>(columns) + 0.5);
  };
  for (const Bout& bout : bouts) {
    const std::size_t begin = std::min(column(bout.begin), columns - 1);
    const std::size_t end = std::clamp(column(bout.end), begin + 1, columns);
    for (std::size_t c = begin; c < end; ++c) cells[c] = fill_of(bout.kind);
    const std::string number = std::to_string(bout.microbatch);
    if (number.size() < end - begin)
      for (std::size_t c = 0; c < number.size(); ++c) cells[begin + c] = number[c];
  }
  std::string row;
  for (const std::string& cell : cells) row += cell;
  return row;
}

}  // namespace

std::string pipeline_picture(const StepProgram& step, const Timeline& timeline,
                             std::size_t columns) {
  const std::size_t places = step.actions.size();
  if (places < 2 || places > most_ranks) return {};
  std::string text;
  bool has_halves = false;
  const std::size_t head = std::string_view("rank 15 ||").size();
  for (std::size_t p = 0; p < places; ++p) {
    const std::vector<Bout> bouts = bouts_of(step, timeline, p);
    for (const Bout& bout : bouts) has_halves |= bout.kind == ActionKind::backward_weight;
    text += fmt::format("rank {:<2} │{}│\n", p, row_of(bouts, timeline.makespan, columns - head));
  }
  text += "        3·· forward of micro-batch 3, ";
  text += has_halves ? "░ backward of inputs, w of weights" : "▒ backward";
  return text + ", blank: idle or communicating\n";
}

}  // namespace rehearse
