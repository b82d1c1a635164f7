// Actions of the schedule become boxes from their first kernel's begin to their last one's end.
#include "tools/report/pipeline_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/engine/explain.hpp"
#include "tools/report/lanes.hpp"
#include "tools/report/op_words.hpp"

namespace rehearse {

namespace {

constexpr std::size_t most_ranks = 64, most_data = 20'000;

std::string_view words_of_kind(ActionKind kind) {
  constexpr std::string_view words[] = {"forward", "backward", "backward of inputs",
                                        "backward of weights"};
  return words[static_cast<std::size_t>(kind)];
}

// An action, or an op that belongs to none; `first` is who knows what it waited for.
struct Source {
  std::optional<Action> action;
  OpId first = no_op;
};

class Sources {
 public:
  std::uint32_t add(Source source) {
    all_.push_back(source);
    return static_cast<std::uint32_t>(all_.size() - 1);
  }
  static BoxWords action_words(const Action& action) {
    return {std::to_string(action.microbatch),
            fmt::format("{}, {} of micro-batch {} on stage {}", to_string(action),
                        words_of_kind(action.kind), action.microbatch, action.stage),
            ""};
  }
  const Source& operator[](std::uint32_t source) const { return all_[source]; }

 private:
  std::vector<Source> all_;
};

// Which of its rank's stages a stage is, as lanes show: 0 for the first.
class Chunks {
 public:
  bool is_odd(std::uint32_t stage) {
    return order_.try_emplace(stage, order_.size()).first->second % 2 == 1;
  }

 private:
  std::map<std::uint32_t, std::size_t> order_;
};

const Role* first_role(const StepProgram& step, std::size_t place) {
  for (const Role& role : step.roles)
    if (role.pipeline_rank == place) return &role;
  return nullptr;
}

FigureLane lane_of_actions(const StepProgram& step, const Timeline& timeline, const Role& role,
                           std::string group, Sources& sources) {
  FigureLane lane{std::move(group), "", 22, {}};
  Chunks chunks;
  for (const ActionOps& action : step.actions[role.pipeline_rank]) {
    Time begin = Time::never(), end;
    OpId first = no_op;
    for (std::size_t i = index(action.begin); i < index(action.end); ++i) {
      const Program::Op& op = step.program.ops()[i];
      if (op.rank != role.rank || op.kind != WorkKind::compute) continue;
      if (timeline.spans[i].begin < begin) first = static_cast<OpId>(i);
      begin = std::min(begin, timeline.spans[i].begin);
      end = std::max(end, timeline.spans[i].end);
    }
    const bool odd = chunks.is_odd(action.action.stage);
    if (begin >= end) continue;
    lane.boxes.push_back(
        {begin, end, paint_of(action.action.kind, odd), sources.add({action.action, first})});
  }
  return lane;
}

// What belongs to no micro-batch: optimizer steps, and the kernels around them.
void add_updates(FigureLane& lane, const StepProgram& step, const Timeline& timeline, Rank rank,
                 Sources& sources) {
  for (std::size_t i = 0; i < step.program.size(); ++i) {
    const Program::Op& op = step.program.ops()[i];
    const OpTag& tag = step.tags[i];
    const Timeline::Span& span = timeline.spans[i];
    if (op.rank != rank || op.kind != WorkKind::compute || span.begin >= span.end) continue;
    if (tag.phase != Phase::optimizer) continue;
    lane.boxes.push_back(
        {span.begin, span.end, Paint::optimizer, sources.add({{}, static_cast<OpId>(i)})});
  }
}

// Activations and gradients on their way from this rank to others.
FigureLane lane_of_sends(const StepProgram& step, const Timeline& timeline, Rank rank,
                         std::string group, Sources& sources) {
  FigureLane lane{std::move(group), "", 5, {}};
  for (std::size_t i = 0; i < step.program.size(); ++i) {
    const Program::Op& op = step.program.ops()[i];
    const Timeline::Span& span = timeline.spans[i];
    if (op.rank != rank || op.kind != WorkKind::transfer || span.begin >= span.end) continue;
    if (step.tags[i].phase != Phase::hand_over) continue;
    lane.boxes.push_back(
        {span.begin, span.end, Paint::communication, sources.add({{}, static_cast<OpId>(i)})});
  }
  std::stable_sort(lane.boxes.begin(), lane.boxes.end(),
                   [](const LaneBox& a, const LaneBox& b) { return a.begin < b.begin; });
  // Both directions share the narrow lane: what overlaps is shown until the next one begins.
  for (std::size_t b = 0; b + 1 < lane.boxes.size(); ++b)
    lane.boxes[b].end = std::min(lane.boxes[b].end, lane.boxes[b + 1].begin);
  return lane;
}

FigureTable table_of(const Lanes& lanes) {
  FigureTable table{{"rank", "actions", "busy", "idle", "share idle"}, {}};
  for (const FigureLane& lane : lanes.lanes) {
    if (lane.height < 12) continue;
    Time busy;
    std::size_t actions = 0;
    for (const LaneBox& box : lane.boxes) {
      busy += box.end - box.begin;
      actions += box.paint != Paint::optimizer;
    }
    const Time idle = lanes.whole - busy;
    table.rows.push_back(
        {lane.group, std::to_string(actions), readable(busy), readable(idle),
         fmt::format("{:.1f} %", 100 * idle.seconds().count() / lanes.whole.seconds().count())});
  }
  return table;
}

Figure finished(Lanes& lanes, std::string description, const FigureSize& size) {
  Figure figure{"pipeline", "Pipeline", std::move(description), "", {}, ""};
  figure.svg = draw_lanes(lanes, size, figure.title, figure.description);
  if (!size.has_data) return figure;
  figure.table = table_of(lanes);
  figure.data = lanes_data(lanes, most_data);
  return figure;
}

}  // namespace

Figure pipeline_figure(const StepProgram& step, const Timeline& timeline, const FigureSize& size) {
  Sources sources;
  Lanes lanes;
  lanes.whole = timeline.makespan;
  lanes.tell = [&](std::uint32_t number) {
    const Source& source = sources[number];
    BoxWords words = source.action ? Sources::action_words(*source.action)
                                   : BoxWords{"", op_words(step, source.first), ""};
    words.waited = wait_words(step, timeline, source.first);
    return words;
  };
  const std::size_t places = std::min(step.actions.size(), most_ranks);
  for (std::size_t p = 0; p < places; ++p) {
    const Role* const role = first_role(step, p);
    if (role == nullptr) continue;
    const std::string group = fmt::format("pipeline rank {}", p);
    FigureLane lane = lane_of_actions(step, timeline, *role, group, sources);
    add_updates(lane, step, timeline, role->rank, sources);
    lanes.lanes.push_back(std::move(lane));
    FigureLane sends = lane_of_sends(step, timeline, role->rank, group, sources);
    if (!sends.boxes.empty()) lanes.lanes.push_back(std::move(sends));
  }
  std::string description = fmt::format(
      "A lane for each pipeline rank, time to the right, {} in all. Each box is the forward or "
      "backward pass of one micro-batch, whose number it carries; where a rank has no box it waits "
      "or communicates. Narrow lanes show what it sends to other stages.",
      readable(timeline.makespan));
  if (places < step.actions.size())
    description += fmt::format(" The first {} of {} ranks.", places, step.actions.size());
  return finished(lanes, std::move(description), size);
}

Figure schedule_figure(const Schedule& schedule, const StageTimes& times, Time unit,
                       const FigureSize& size) {
  const ScheduleTimes steps = step_times(schedule, times);
  Sources sources;
  Lanes lanes;
  lanes.whole = steps.makespan * unit;
  lanes.tell = [&](std::uint32_t number) { return Sources::action_words(*sources[number].action); };
  for (std::size_t r = 0; r < std::min(schedule.ranks.size(), most_ranks); ++r) {
    FigureLane lane{fmt::format("pipeline rank {}", r), "", 22, {}};
    Chunks chunks;
    for (std::size_t c = 0; c < schedule.ranks[r].size(); ++c) {
      const std::optional<Action>& action = schedule.ranks[r][c];
      if (!action || steps.begin[r][c] < 0) continue;
      const Time begin = steps.begin[r][c] * unit;
      lane.boxes.push_back({begin, begin + times.of(action->kind) * unit,
                            paint_of(action->kind, chunks.is_odd(action->stage)),
                            sources.add({*action, no_op})});
    }
    lanes.lanes.push_back(std::move(lane));
  }
  return finished(lanes,
                  "The order of a pipeline schedule, a lane for each rank; every stage takes "
                  "equally long and communication is free.",
                  size);
}

}  // namespace rehearse
