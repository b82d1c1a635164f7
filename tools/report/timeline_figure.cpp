// An op goes onto the lane of its stream, a transfer onto a lane at each of its ends.
#include "tools/report/timeline_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/engine/explain.hpp"
#include "tools/report/lanes.hpp"
#include "tools/report/op_words.hpp"

namespace rehearse {

namespace {

constexpr std::size_t most_groups = 24, most_lanes = 96, most_data = 30'000;
constexpr double kernel_height = 20, exchange_height = 13;

using LaneKey = std::pair<std::size_t, std::size_t>;  // group, then order within it

struct Draft {
  Lanes lanes;
  std::map<LaneKey, FigureLane> made;

  FigureLane& lane(LaneKey key, std::string_view group, std::string_view name) {
    FigureLane& lane = made[key];
    if (lane.group.empty())
      lane = {std::string{group},
              std::string{name},
              key.second == 0 ? kernel_height : exchange_height,
              {}};
    return lane;
  }
  void add_up() {
    for (auto& [key, lane] : made)
      for (FigureLane& one : unlapped(std::move(lane))) lanes.lanes.push_back(std::move(one));
  }
};

FigureTable table_of(const std::map<LaneKey, FigureLane>& lanes, Time whole) {
  FigureTable table{{"who", "stream", "boxes", "busy", "share of the time"}, {}};
  for (const auto& [key, lane] : lanes) {
    Time busy, until;  // boxes may overlap here
    std::vector<LaneBox> boxes = lane.boxes;
    std::stable_sort(boxes.begin(), boxes.end(),
                     [](const LaneBox& a, const LaneBox& b) { return a.begin < b.begin; });
    for (const LaneBox& box : boxes) {
      if (box.end <= until) continue;
      busy += box.end - std::max(box.begin, until);
      until = box.end;
    }
    table.rows.push_back(
        {lane.group, lane.name, std::to_string(lane.boxes.size()), readable(busy),
         fmt::format("{:.1f} %", 100 * busy.seconds().count() / whole.seconds().count())});
  }
  return table;
}

Figure finished(Draft& draft, std::string description, const FigureSize& size) {
  Figure figure{"timeline", "Timeline", std::move(description), "", {}, ""};
  if (size.has_data) figure.table = table_of(draft.made, draft.lanes.whole);
  draft.add_up();
  std::vector<FigureLane>& lanes = draft.lanes.lanes;
  if (lanes.size() > most_lanes) {
    figure.description += fmt::format(" The first {} of {} lanes.", most_lanes, lanes.size());
    lanes.resize(most_lanes);
  }
  figure.svg = draw_lanes(draft.lanes, size, figure.title, figure.description);
  if (size.has_data) figure.data = lanes_data(draft.lanes, most_data);
  return figure;
}

class StepDraft {
 public:
  StepDraft(const StepProgram& step, const Timeline& timeline) : step_{step}, timeline_{timeline} {
    draft_.lanes.whole = timeline.makespan;
    draft_.lanes.tell = [this](std::uint32_t op) {
      const auto id = static_cast<OpId>(op);
      return BoxWords{step_.program.names()[step_.program[id].label.name], op_words(step_, id),
                      wait_words(step_, timeline_, id)};
    };
    const std::size_t count = std::min(step.roles.size(), most_groups);
    for (std::size_t r = 0; r < count; ++r) {
      const Role& role = step.roles[r];
      group_of_[role.rank] = names_.size();
      names_.push_back(role.ranks == 1 ? fmt::format("{} r{}", role.name, index(role.rank))
                                       : fmt::format("{} ×{}", role.name, role.ranks));
    }
    for (std::size_t i = 0; i < step.program.size(); ++i) add(static_cast<OpId>(i));
  }

  Figure done(const FigureSize& size) {
    std::string description = fmt::format(
        "What ranks do when, {} in all: a group of lanes for each role, which stands for all ranks "
        "that do the same; kernels above, what is sent and received below.",
        readable(timeline_.makespan));
    if (step_.roles.size() > most_groups)
      description += fmt::format(" The first {} of {} roles.", most_groups, step_.roles.size());
    return finished(draft_, std::move(description), size);
  }

 private:
  void add(OpId id) {
    const Program::Op& op = step_.program[id];
    const Timeline::Span& span = timeline_.spans[index(id)];
    if (op.kind == WorkKind::marker || span.begin >= span.end) return;
    if (op.kind != WorkKind::transfer) return box(id, op.rank, 0, "kernels");
    const Connection& way = step_.program[step_.program.transfer(op).connection];
    if (step_.tags[index(id)].phase == Phase::hand_over) {
      box(id, way.source, 1, "sends");
      return box(id, way.target, 2, "receives");
    }
    const Dimension dimension = step_.tags[index(id)].dimension;
    for (const Rank rank : way.others)
      box(id, rank, 3 + static_cast<std::size_t>(dimension),
          fmt::format("{} exchange", short_name(dimension)));
  }

  void box(OpId id, Rank rank, std::size_t order, std::string_view name) {
    const auto group = group_of_.find(rank);
    if (group == group_of_.end()) return;
    const Timeline::Span& span = timeline_.spans[index(id)];
    const OpTag& tag = step_.tags[index(id)];
    const LaneBox box{span.begin, span.end, paint_of(tag.phase, order > 0),
                      static_cast<std::uint32_t>(index(id))};
    draft_.lane({group->second, order}, names_[group->second], name).boxes.push_back(box);
  }

  const StepProgram& step_;
  const Timeline& timeline_;
  std::map<Rank, std::size_t> group_of_;
  std::vector<std::string> names_;
  Draft draft_;
};

}  // namespace

Figure timeline_figure(const StepProgram& step, const Timeline& timeline, const FigureSize& size) {
  return StepDraft(step, timeline).done(size);
}

Figure timeline_figure(const Program& program, const Timeline& timeline, const FigureSize& size) {
  Draft draft;
  draft.lanes.whole = timeline.makespan;
  std::set<Rank> ranks;
  for (const Program::Op& op : program.ops()) ranks.insert(op.rank);
  const std::size_t all = ranks.size();
  while (ranks.size() > most_groups) ranks.erase(std::prev(ranks.end()));
  draft.lanes.tell = [&](std::uint32_t number) {
    const auto id = static_cast<OpId>(number);
    const Program::Op& op = program[id];
    BoxWords words{program.names()[op.label.name], program.label(id),
                   wait_words(program, timeline, id)};
    if (op.kind == WorkKind::transfer)
      words.words +=
          fmt::format(" to rank {}, {}", index(program[program.transfer(op).connection].target),
                      readable(program.transfer(op).size));
    return words;
  };
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Op& op = program.ops()[i];
    const Timeline::Span& span = timeline.spans[i];
    if (op.kind == WorkKind::marker || span.begin >= span.end || !ranks.contains(op.rank)) continue;
    const bool computes = op.kind == WorkKind::compute;
    const LaneBox box{span.begin, span.end, computes ? Paint::forward : Paint::communication,
                      static_cast<std::uint32_t>(i)};
    draft
        .lane({index(op.rank), index(op.stream)}, fmt::format("rank {}", index(op.rank)),
              stream_name(op.stream))
        .boxes.push_back(box);
  }
  std::string description = fmt::format("What ranks do when, {} in all: a lane for each stream.",
                                        readable(timeline.makespan));
  if (all > ranks.size())
    description += fmt::format(" The first {} of {} ranks.", ranks.size(), all);
  return finished(draft, std::move(description), size);
}

}  // namespace rehearse
