// The laws, one function each. Every tolerance is said where it is granted.
#include "sim/engine/physics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/program/stream_table.hpp"

namespace rehearse {

namespace {

// The clock ticks in picoseconds, so one rounding may hide one of them; a share of 1e-9 covers the
// doubles in which an engine keeps what is left of a transfer.
constexpr double relative_slack = 1e-9;
constexpr double tick = 1e-12;

class Laws {
 public:
  Laws(const Program& program, const Paths& paths, const Topology& topology,
       const Timeline& timeline)
      : program_{program}, paths_{paths}, topology_{topology}, timeline_{timeline} {}

  // One walk over the ops for all laws: millions of them pass through the caches once.
  void check() {
    sizes_match();
    const StreamTable streams{program_};
    std::vector<Lane> lanes(streams.size());
    std::vector<Load> carried(program_.connections().size());
    Time last;
    for (std::size_t i = 0; i < program_.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      const Program::Op& op = program_[id];
      time_is_finite(id);
      causes_come_first(id);
      if (is_queue(op.stream))
        served_.push_back({streams.number(op.rank, op.stream), id, ready(id), stream_free(id)});
      else
        for (const Rank rank : ranks_of(program_, op))
          stream_is_in_order(id, lanes[streams.number(rank, op.stream)]);
      work_takes_its_time(id, op);
      last = std::max(last, span(id).end);
      if (op.kind != WorkKind::transfer) continue;
      Load& load = carried[index(program_.transfer(op).connection)];
      load.bytes += program_.transfer(op).wire;
      ++load.transfers;
    }
    if (timeline_.makespan != last)
      fail(fmt::format("the makespan is {} ps, but the last op ends at {} ps",
                       timeline_.makespan.ps(), last.ps()));
    queues_are_fair();
    links_hold(carried);
  }

 private:
  [[noreturn]] static void fail(const std::string& law) {
    throw CheckFailed("impossible result: " + law);
  }

  const Timeline::Span& span(OpId id) const { return timeline_.spans[index(id)]; }

  void sizes_match() const {
    if (timeline_.spans.size() != program_.size())
      fail(fmt::format("{} ops, but {} spans", program_.size(), timeline_.spans.size()));
    if (program_.folded.empty() && timeline_.link_bytes.size() != topology_.links().size())
      fail(fmt::format("{} links, but bytes of {}", topology_.links().size(),
                       timeline_.link_bytes.size()));
  }

  void time_is_finite(OpId id) const {
    const Timeline::Span& s = span(id);
    if (s.begin < Time{} || s.end < s.begin || s.end == Time::never())
      fail(fmt::format("{} runs from {} ps to {} ps", program_.describe(id), s.begin.ps(),
                       s.end.ps()));
  }

  void causes_come_first(OpId id) const {
    for (const OpId input : program_.after(id))
      if (span(id).begin < span(input).end) began_early(id, input, "its input");
    const OpId blocker = span(id).blocker;
    if (blocker == no_op) return;
    if (index(blocker) >= program_.size())
      fail(program_.describe(id) + " waited for an op that does not exist");
    if (span(id).begin < span(blocker).end && !may_overtake(id, blocker))
      began_early(id, blocker, "what it waited for,");
  }

  // Whoever waited for its stream only may begin while the op before it is in flight.
  bool may_overtake(OpId id, OpId blocker) const {
    const Program::Op &op = program_[id], &before = program_[blocker];
    return op.rank == before.rank && op.stream == before.stream &&
           span(id).begin >= stream_free(blocker);
  }

  Time stream_free(OpId id) const {
    return span(id).end - flight_of(program_, paths_, program_[id]);
  }

  [[noreturn]] void began_early(OpId id, OpId cause, std::string_view role) const {
    fail(fmt::format("{} begins at {} ps, before {} {} ends at {} ps", program_.describe(id),
                     span(id).begin.ps(), role, program_.describe(cause), span(cause).end.ps()));
  }

  struct Lane {
    OpId last = no_op;
    Time free;
  };

  // Program order on every stream, hence also no overlap but with what is in flight.
  void stream_is_in_order(OpId id, Lane& lane) const {
    if (span(id).begin < lane.free && lane.last != id)
      fail(
          fmt::format("{} begins at {} ps, before the op before it on its stream, {}, frees "
                      "it at {} ps",
                      program_.describe(id), span(id).begin.ps(), program_.describe(lane.last),
                      lane.free.ps()));
    lane = {id, stream_free(id)};
  }

  struct Served {
    std::uint32_t queue = 0;
    OpId op{};
    Time ready, free;
  };

  Time ready(OpId id) const {
    Time last;
    for (const OpId input : program_.after(id)) last = std::max(last, span(input).end);
    return last;
  }

  // One at a time on every queue, and nobody is served before another who was ready earlier.
  void queues_are_fair() {
    const auto when = [&](const Served& s) {
      return std::tuple{s.queue, span(s.op).begin, s.free, s.ready};
    };
    std::sort(served_.begin(), served_.end(),
              [&](const Served& a, const Served& b) { return when(a) < when(b); });
    for (std::size_t i = 1; i < served_.size(); ++i) {
      const Served &before = served_[i - 1], &next = served_[i];
      if (before.queue != next.queue) continue;
      if (span(next.op).begin < before.free)
        fail(fmt::format("{} begins at {} ps, while {} has their queue until {} ps",
                         program_.describe(next.op), span(next.op).begin.ps(),
                         program_.describe(before.op), before.free.ps()));
      if (next.ready < before.ready)
        fail(fmt::format("{}, ready at {} ps, is served after {}, ready at {} ps",
                         program_.describe(next.op), next.ready.ps(), program_.describe(before.op),
                         before.ready.ps()));
    }
  }

  void work_takes_its_time(OpId id, const Program::Op& op) const {
    const Time took = span(id).end - span(id).begin;
    Time least, granted;
    if (op.kind == WorkKind::transfer) least = least_of(program_.transfer(op));
    if (op.kind == WorkKind::compute) {
      least = program_.compute(op).fixed;
      // It may use the rest of the picosecond in which the kernel before it ended (compute_units).
      granted = Time::picoseconds(1);
    }
    if (took + granted < least)
      fail(fmt::format("{} took {} ps, but needs {} ps alone", program_.describe(id), took.ps(),
                       least.ps()));
  }

  // Its latency, the gaps between its bursts, the wire's bytes at the narrowest link's rate.
  Time least_of(const Transfer& transfer) const {
    const double rate = paths_.rate_alone(transfer.connection).count();
    if (std::isnan(rate) || rate <= 0)
      fail(fmt::format("connection c{} has no rate", index(transfer.connection)));
    const ConnectionId way = transfer.connection;
    const std::int64_t bursts = paths_.bursts(way);
    const double wire = static_cast<double>(transfer.wire.count() / bursts) / rate;
    const auto one = static_cast<std::int64_t>(wire * (1 - relative_slack) / tick) - 1;
    if (one <= 0) return paths_.latency(way);
    return paths_.latency(way) +
           Time::picoseconds(bursts * one + (bursts - 1) * paths_.gap(way).ps());
  }

  struct Load {
    Bytes bytes;
    std::int64_t transfers = 0;
  };

  // Bytes in equal bytes out, and no more than bandwidth times makespan. Each transfer may have
  // gained a tick by rounding.
  void links_hold(std::span<const Load> carried) const {
    const CrossedLinks crossed(paths_, topology_);
    std::vector<Load> expected(crossed.size());
    for (std::size_t c = 0; c < carried.size(); ++c)
      for (const Paths::Crossing& crossing : paths_.crossings(static_cast<ConnectionId>(c))) {
        Load& load = expected[crossed.number(crossing.link)];
        load.bytes += crossing.weight * carried[c].bytes;
        load.transfers += crossing.weight * carried[c].transfers;
      }
    if (program_.folded.empty()) bytes_are_conserved(crossed, expected);
    for (std::size_t l = 0; l < expected.size(); ++l) {
      const Bytes bytes = expected[l].bytes;
      const double rate = topology_[crossed[l]].bandwidth.count();
      const double span = timeline_.makespan.seconds().count();
      const double slack = tick * static_cast<double>(1 + expected[l].transfers);
      const double most = rate * (span * (1 + relative_slack) + slack) + 1;
      if (static_cast<double>(bytes.count()) > most)
        fail(fmt::format("{} carried {} bytes in {} ps, but can carry {:.0f}",
                         link_name(crossed[l]), bytes.count(), timeline_.makespan.ps(),
                         rate * span));
    }
  }

  void bytes_are_conserved(const CrossedLinks& crossed, std::span<const Load> expected) const {
    Bytes in, out;
    for (std::size_t l = 0; l < expected.size(); ++l) {
      const Bytes bytes = timeline_.link_bytes[index(crossed[l])];
      in += expected[l].bytes;
      if (bytes != expected[l].bytes)
        fail(fmt::format("{} carried {} bytes, but its transfers put {} on it",
                         link_name(crossed[l]), bytes.count(), expected[l].bytes.count()));
    }
    for (const Bytes bytes : timeline_.link_bytes) out += bytes;
    if (in != out)
      fail(fmt::format("the links carried {} bytes, but the transfers put {} on them", out.count(),
                       in.count()));
  }

  std::string link_name(LinkId id) const {
    const Link& link = topology_[id];
    return fmt::format("link {} ({} -> {})", index(id), topology_[link.source].name,
                       topology_[link.target].name);
  }

  const Program& program_;
  const Paths& paths_;
  const Topology& topology_;
  const Timeline& timeline_;
  std::vector<Served> served_;
};

}  // namespace

void check_physics(const Program& program, const Paths& paths, const Topology& topology,
                   const Timeline& timeline) {
  Laws{program, paths, topology, timeline}.check();
}

}  // namespace rehearse
