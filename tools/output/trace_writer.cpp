// Kineto's layout: a process per rank, a thread per stream, kernels as complete events ("X"),
// dependencies across ranks as flows ("s" to "f"), links as counters ("C") on a process of their
// own, because transfers that share a link overlap and slices of one thread must not. For the same
// reason a posted transfer's slice ends when its stream is free; what is left of its way is in its
// arguments. A space follows every colon: HolisticTraceAnalysis finds the rank by "rank":\s+(\d+).
#include "tools/output/trace_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/error.hpp"
#include "sim/engine/explain.hpp"
#include "sim/program/stream_table.hpp"
#include "tools/output/kernel_names.hpp"
#include "tools/output/link_counters.hpp"
#include "tools/output/trace_json.hpp"

namespace rehearse {

namespace {

class TraceWriter {
 public:
  TraceWriter(OutputFile& out, const Program& program, const Timeline& timeline, const Paths& paths,
              const Topology& topology, const TraceOptions& options)
      : program_{program},
        timeline_{timeline},
        paths_{paths},
        topology_{topology},
        options_{options},
        shown_(shown(topology, options)),
        json_{out, first(shown_), shown_.size()} {
    for (const std::string& name : program.names()) names_.push_back(kernel_name(name));
  }

  void run() {
    name_tracks();
    for (std::size_t i = 0; i < program_.size(); ++i) op(static_cast<OpId>(i));
    counters();
    json_.finish();
  }

 private:
  static std::vector<bool> shown(const Topology& topology, const TraceOptions& options) {
    std::vector<bool> list(topology.rank_count(), options.ranks.empty());
    for (const Rank rank : options.ranks) list.at(index(rank)) = true;
    return list;
  }
  static std::size_t first(const std::vector<bool>& shown) {
    return static_cast<std::size_t>(std::find(shown.begin(), shown.end(), true) - shown.begin());
  }
  bool shows(Rank rank) const { return shown_[index(rank)]; }

  void name_tracks() {
    std::vector<bool> has_ops(shown_.size(), false);
    std::vector<std::pair<Rank, Stream>> tracks;
    const StreamTable streams{program_};
    std::vector<bool> seen(streams.size(), false);
    for (const Program::Op& op : program_.ops())
      for (const Rank rank : ranks_of(program_, op)) {
        const std::uint32_t number = streams.number(rank, op.stream);
        if (seen[number] || !shows(rank)) continue;
        seen[number] = true;
        has_ops[index(rank)] = true;
        tracks.emplace_back(rank, op.stream);
      }
    std::sort(tracks.begin(), tracks.end());
    for (std::size_t r = 0; r < has_ops.size(); ++r)
      if (has_ops[r])
        json_.name_process(r,
                           fmt::format("rank {} ({})", r,
                                       topology_[topology_.device_of(static_cast<Rank>(r))].name));
    for (const auto& [rank, stream] : tracks)
      json_.name_thread(index(rank), index(stream), stream_name(stream));
  }

  void op(OpId id) {
    const Program::Op& op = program_[id];
    for (const Rank rank : ranks_of(program_, op))
      if (shows(rank)) slice(id, op, rank);
    if (shows(op.rank)) flows(id, op);
  }

  void slice(OpId id, const Program::Op& op, Rank rank) {
    const Timeline::Span& span = timeline_.spans[index(id)];
    const std::string label = json_string(program_.label(id));
    if (op.kind == WorkKind::marker) {
      json_.event(
          "\"ph\": \"i\", \"s\": \"t\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}}}",
          label, index(rank), index(op.stream), microseconds(span.begin));
      return;
    }
    const bool computes = op.kind == WorkKind::compute || op.label.name >= names_.size();
    json_.event(
        "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}, "
        "\"dur\": {}, \"args\": {{\"stream\": {}, \"device\": {}, \"correlation\": {}, \"label\": "
        "{}",
        computes ? label : '"' + names_[op.label.name].kernel + '"', index(rank), index(op.stream),
        microseconds(span.begin), microseconds(slice_end(id) - span.begin), index(op.stream),
        index(rank), index(id), label);
    if (op.kind == WorkKind::transfer) transfer(op, program_.transfer(op));
    if (op.kind == WorkKind::collective) collective(op, program_.collective(op));
    why(id, span);
    json_.put("}}}}");
  }

  Time slice_end(OpId id) const {
    return timeline_.spans[index(id)].end - flight_of(program_, paths_, program_[id]);
  }

  void message(const Program::Op& op, Bytes in, Bytes out, std::size_t group) {
    const std::string name =
        op.label.name < names_.size() ? names_[op.label.name].collective : "send";
    json_.put(
        ", \"Collective name\": \"{}\", \"In msg nelems\": {}, \"Out msg nelems\": {}, "
        "\"Group size\": {}, \"dtype\": {}, \"Process Group Name\": \"default_pg\"",
        name, in.count() / options_.element.count(), out.count() / options_.element.count(), group,
        json_string(options_.dtype));
  }

  void transfer(const Program::Op& op, const Transfer& work) {
    const Connection& connection = program_[work.connection];
    message(op, work.size, work.size, shown_.size());
    json_.put(", \"source rank\": {}, \"target rank\": {}, \"wire bytes\": {}",
              index(connection.source), index(connection.target), work.wire.count());
    if (const Time flight = paths_.flight(work.connection); flight > Time{})
      json_.put(", \"then in flight (us)\": {}", microseconds(flight));
  }

  void collective(const Program::Op& op, const Collective& work) {
    const bool gathers = work.kind == CollectiveKind::all_gather;
    const bool scatters = work.kind == CollectiveKind::reduce_scatter;
    const Bytes whole = work.data.size;
    const Bytes part{whole.count() / static_cast<std::int64_t>(work.group.size())};
    message(op, gathers ? part : whole, scatters ? part : whole, work.group.size());
  }

  void why(OpId id, const Timeline::Span& span) {
    if (span.blocker != no_op)
      json_.put(", \"waited for\": \"{}\", \"let go by op\": {}",
                wait_of(program_, timeline_, id) == Wait::input ? "input" : "stream",
                index(span.blocker));
    const auto loss = std::lower_bound(
        timeline_.contentions.begin(), timeline_.contentions.end(), id,
        [](const Timeline::Contention& contention, OpId op) { return contention.op < op; });
    if (loss == timeline_.contentions.end() || loss->op != id) return;
    json_.put(", \"lost to sharing (us)\": {}", microseconds(loss->lost));
    if (loss->link != no_link)
      json_.put(", \"held by\": {}", json_string(link_name(topology_, loss->link)));
  }

  // An arrow leaves just before its slice ends: at the very end no slice encloses it any more.
  void flows(OpId id, const Program::Op& op) {
    for (const OpId input : program_.after(id)) {
      const Program::Op& from = program_[input];
      if (from.rank == op.rank || !shows(from.rank)) continue;
      const Time begin = timeline_.spans[index(input)].begin, end = slice_end(input);
      const bool has_room = end - begin > 1_ns;
      json_.event(
          "\"ph\": \"s\", \"cat\": \"dependency\", \"name\": \"dependency\", \"id\": {}, \"pid\": "
          "{}, "
          "\"tid\": {}, \"ts\": {}}}",
          flows_, index(from.rank), index(from.stream),
          microseconds(has_room ? end - 1_ns : begin));
      json_.event(
          "\"ph\": \"f\", \"bp\": \"e\", \"cat\": \"dependency\", \"name\": \"dependency\", "
          "\"id\": {}, "
          "\"pid\": {}, \"tid\": {}, \"ts\": {}}}",
          flows_, index(op.rank), index(op.stream), microseconds(timeline_.spans[index(id)].begin));
      ++flows_;
    }
  }

  void counters() {
    const std::vector<LinkLoad> loads =
        link_loads(program_, timeline_, paths_, shown_, options_.links);
    if (loads.empty()) return;
    const std::size_t pid = shown_.size();
    json_.name_process(pid, "links");
    for (const LinkLoad& load : loads) {
      // Parallel links join the same devices; their numbers keep their counters apart.
      const std::string name = json_string(
          fmt::format("{} (link {})", link_name(topology_, load.link), index(load.link)));
      for (const LinkLoad::Step& step : load.steps)
        json_.event(
            "\"ph\": \"C\", \"name\": {}, \"pid\": {}, \"ts\": {}, \"args\": {{\"GB/s\": "
            "{:.6g}}}}}",
            name, pid, microseconds(step.from), step.rate.count() * 1e-9);
    }
  }

  const Program& program_;
  const Timeline& timeline_;
  const Paths& paths_;
  const Topology& topology_;
  const TraceOptions& options_;
  std::vector<bool> shown_;  // by rank
  TraceJson json_;
  std::vector<KernelName> names_;  // by Label::name
  std::size_t flows_ = 0;
};

}  // namespace

void write_trace(OutputFile& out, const Program& program, const Timeline& timeline,
                 const Paths& paths, const Topology& topology, const TraceOptions& options) {
  TraceWriter{out, program, timeline, paths, topology, options}.run();
}

std::vector<Rank> parse_ranks(std::string_view text, std::size_t rank_count) {
  const auto fail = [&](std::string_view why) {
    throw InputError(fmt::format("--trace-ranks '{}': {}", text, why));
  };
  const auto number = [&](std::string_view digits) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
      fail("write ranks and ranges, as in 0-7,12");
    if (value >= rank_count) fail(fmt::format("there are {} ranks", rank_count));
    return value;
  };
  std::vector<Rank> ranks;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::size_t dash = part.find('-');
    const std::size_t first = number(part.substr(0, dash));
    const std::size_t last = dash == part.npos ? first : number(part.substr(dash + 1));
    if (last < first) fail("a range runs upward");
    for (std::size_t rank = first; rank <= last; ++rank) ranks.push_back(static_cast<Rank>(rank));
    at = end + 1;
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace rehearse
