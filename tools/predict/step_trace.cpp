// Threads of a process: kernels on stream 0, lanes of communication on the streams after it, what
// comes in from other stages and what overlaps on threads of their own (slices of one thread must
// not overlap), and the schedule's actions as PyTorch's profiler calls them, "PP:0F3".
#include "tools/predict/step_trace.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/error.hpp"
#include "tools/output/kernel_names.hpp"
#include "tools/output/trace_json.hpp"
#include "tools/output/trace_writer.hpp"

namespace rehearse {

namespace {

constexpr std::size_t receives = 16, overflow = 32, schedule_track = 64;
constexpr std::string_view lanes[] = {
    "collectives of layers", "gradients",          "parameters",      "sends forward",
    "sends backward",        "averages of copies", "sums over stages"};

std::string_view kineto_type(Precision precision) {
  constexpr std::string_view words[] = {"Float", "Float", "Half", "BFloat16", "Float8_e4m3fn"};
  return words[static_cast<std::size_t>(precision)];
}

char phase_letter(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return 'F';
    case Phase::recompute:
    case Phase::backward:
      return 'B';
    case Phase::backward_input:
      return 'I';
    case Phase::backward_weight:
      return 'W';
    default:
      return 0;
  }
}

class StepTrace {
 public:
  StepTrace(OutputFile& out, const StepPredictor::Answer& answer, const Paths& paths,
            const Training& training, std::span<const Rank> ranks)
      : answer_{answer},
        paths_{paths},
        program_{answer.step.program},
        training_{training},
        shown_{ranks.begin(), ranks.end()},
        json_{out, index(ranks.front()), answer.prediction.world} {
    for (const std::string& name : program_.names())
      names_.push_back(nccl_kernel_name(name, to_string(training.precision)));
  }

  void run() {
    for (const Role& role : answer_.step.roles)
      if (shows(role.rank))
        json_.name_process(index(role.rank), fmt::format("rank {}: {}{}", index(role.rank),
                                                         role.name, stands_for(role)));
    for (std::size_t i = 0; i < program_.size(); ++i) op(static_cast<OpId>(i));
    for (const Role& role : answer_.step.roles)
      if (shows(role.rank)) {
        if (answer_.prediction.pipeline > 1) actions(role);
        memory(role);
      }
    for (const auto& [track, end] : ends_) name_track(track.first, track.second);
    json_.finish();
  }

 private:
  using Track = std::pair<std::size_t, std::size_t>;  // process, thread

  bool shows(Rank rank) const { return shown_.contains(rank); }
  static std::string stands_for(const Role& role) {
    return role.ranks == 1 ? "" : fmt::format(" ({} ranks alike)", role.ranks);
  }

  void name_track(std::size_t pid, std::size_t tid) {
    const std::size_t stream = tid % receives, first = index(Stream::comm);
    std::string name = "compute";
    if (tid >= schedule_track)
      name = "schedule";
    else if (stream >= first)
      name = stream - first < std::size(lanes) ? lanes[stream - first] : "communication";
    if (tid < schedule_track && tid / receives % 2 == 1) name = "receives";
    if (tid < schedule_track && tid >= overflow) name += " (beside)";
    json_.name_thread(pid, tid, name);
  }

  // A thread that is free at that time.
  std::size_t track(std::size_t pid, std::size_t tid, const Timeline::Span& span) {
    Time* end = &ends_[{pid, tid}];
    if (*end > span.begin) {
      tid += overflow;
      end = &ends_[{pid, tid}];
    }
    *end = std::max(*end, span.end);
    return tid;
  }

  void op(OpId id) {
    const Program::Op& op = program_[id];
    if (op.kind == WorkKind::marker) return;
    if (op.kind != WorkKind::transfer) {
      if (shows(op.rank)) slice(id, op, op.rank, index(op.stream), "");
      return;
    }
    const Connection& connection = program_[program_.transfer(op).connection];
    const bool sends = answer_.step.tags[index(id)].phase == Phase::hand_over;
    if (sends) {
      if (shows(connection.source)) slice(id, op, connection.source, index(op.stream), "send");
      if (shows(connection.target))
        slice(id, op, connection.target, index(op.stream) + receives, "recv");
      return;
    }
    for (const Rank rank : connection.others)
      if (shows(rank)) slice(id, op, rank, index(op.stream), names_[op.label.name].collective);
  }

  void slice(OpId id, const Program::Op& op, Rank rank, std::size_t stream,
             std::string_view collective) {
    Timeline::Span span = answer_.timeline.spans[index(id)];
    span.end = span.end - flight_of(program_, paths_, op);  // its stream is free before it arrives
    const OpTag& tag = answer_.step.tags[index(id)];
    const std::string& label = program_.names()[op.label.name];
    const std::size_t tid = track(index(rank), stream, span);
    json_.event(
        "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}, "
        "\"dur\": {}, \"args\": {{\"stream\": {}, \"device\": {}, \"correlation\": {}, "
        "\"label\": {}, \"phase\": \"{}\", \"stage\": {}, \"microbatch\": {}",
        json_string(collective.empty() ? label : names_[op.label.name].kernel), index(rank), tid,
        microseconds(span.begin), microseconds(span.end - span.begin), tid, index(rank), index(id),
        json_string(label), to_string(tag.phase), tag.stage, tag.microbatch);
    if (const char action = phase_letter(tag.phase))
      json_.put(", \"action\": \"{}{}{}\"", tag.stage, action, tag.microbatch);
    if (!collective.empty()) message(tag, collective);
    json_.put("}}}}");
  }

  std::size_t group_size(Dimension dimension) const {
    const Prediction& told = answer_.prediction;
    switch (dimension) {
      case Dimension::tensor:
        return told.tensor;
      case Dimension::context:
        return told.context;
      case Dimension::expert:
        return told.expert;
      case Dimension::data:
        return told.data * told.context;
      case Dimension::pipeline:
        return told.pipeline;
    }
    return 1;
  }

  void message(const OpTag& tag, std::string_view collective) {
    const bool sums = tag.phase == Phase::gradients && training_.gradients_in_fp32;
    const Precision precision = sums ? Precision::fp32 : training_.precision;
    const auto group = static_cast<std::int64_t>(group_size(tag.dimension));
    const std::int64_t whole = tag.bytes.count() / bytes_of(precision).count();
    const std::int64_t part = whole / group;
    json_.put(
        ", \"Collective name\": \"{}\", \"In msg nelems\": {}, \"Out msg nelems\": {}, "
        "\"Group size\": {}, \"dtype\": \"{}\", \"Process Group Name\": \"{}\"",
        collective, collective == "allgather" ? part : whole,
        collective == "reduce_scatter" ? part : whole, group, kineto_type(precision),
        to_string(tag.dimension));
  }

  void actions(const Role& role) {
    for (const ActionOps& action : answer_.step.actions[role.pipeline_rank]) {
      Timeline::Span whole{Time::never(), Time{}, no_op};
      for (std::size_t i = index(action.begin); i < index(action.end); ++i) {
        const Program::Op& op = program_.ops()[i];
        if (op.rank != role.rank || op.kind != WorkKind::compute) continue;
        whole.begin = std::min(whole.begin, answer_.timeline.spans[i].begin);
        whole.end = std::max(whole.end, answer_.timeline.spans[i].end);
      }
      if (whole.begin >= whole.end) continue;
      const std::size_t tid = track(index(role.rank), schedule_track, whole);
      json_.event(
          "\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"PP:{}{}{}\", \"pid\": {}, "
          "\"tid\": {}, \"ts\": {}, \"dur\": {}}}",
          action.action.stage, letter(action.action.kind), action.action.microbatch,
          index(role.rank), tid, microseconds(whole.begin), microseconds(whole.end - whole.begin));
    }
  }

  // All that changes at one moment is one point of the curve; what goes, goes first.
  void memory(const Role& role) {
    std::map<Time, MemoryUse> changes{{Time{}, role.at_rest}};
    for (const MemoryChange& change : role.changes) {
      const Timeline::Span& span = answer_.timeline.spans[index(change.op)];
      changes[change.at_end ? span.end : span.begin][static_cast<std::size_t>(change.kind)] +=
          change.bytes;
    }
    MemoryUse now{};
    for (const auto& [time, change] : changes) {
      json_.event(
          "\"ph\": \"C\", \"name\": \"memory (GiB)\", \"pid\": {}, \"ts\": {}, \"args\": {{",
          index(role.rank), microseconds(time));
      for (std::size_t k = 0; k < memory_kinds; ++k) {
        now[k] += change[k];
        json_.put("{}\"{}\": {:.6f}", k == 0 ? "" : ", ", to_string(static_cast<MemoryKind>(k)),
                  static_cast<double>(now[k].count()) / (1 << 30));
      }
      json_.put("}}}}");
    }
  }

  const StepPredictor::Answer& answer_;
  const Paths& paths_;
  const Program& program_;
  const Training& training_;
  std::set<Rank> shown_;
  TraceJson json_;
  std::vector<KernelName> names_;  // by Label::name
  std::map<Track, Time> ends_;     // of the last slice of each thread
};

}  // namespace

std::vector<Rank> traced_ranks(std::string_view text, const StepPredictor::Answer& answer) {
  std::vector<Rank> simulated;
  for (const Role& role : answer.step.roles) simulated.push_back(role.rank);
  if (text.empty()) return simulated;
  std::vector<Rank> ranks = parse_ranks(text, answer.prediction.world);
  for (const Rank rank : ranks)
    if (std::find(simulated.begin(), simulated.end(), rank) == simulated.end()) {
      std::vector<std::size_t> some;
      for (std::size_t r = 0; r < std::min<std::size_t>(simulated.size(), 8); ++r)
        some.push_back(index(simulated[r]));
      throw InputError(fmt::format(
          "--trace-ranks {}: rank {} is played by another; these stand for all: {}{} (--no-fold "
          "simulates every rank)",
          text, index(rank), fmt::join(some, ", "), simulated.size() > some.size() ? " …" : ""));
    }
  return ranks;
}

void write_step_trace(OutputFile& out, const StepPredictor::Answer& answer, const Paths& paths,
                      const Training& training, std::span<const Rank> ranks) {
  StepTrace(out, answer, paths, training, ranks).run();
}

}  // namespace rehearse
