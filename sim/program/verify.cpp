// The race check. For each rank's buffer, the bytes are cut into segments that remember who wrote
// them last and who has read them since; each op must be ordered after those it conflicts with.
//
//   rank 2, buffer 0   |── op 4 wrote ──|── op 7 wrote, op 9 and 12 read ──|        |
//                      0               512                                2048
//
// Only the last writer and the latest readers are kept: whoever is ordered after them is ordered
// after all before them, and whoever is not is a race already.
//
// Two ops of one queue do not race: they exclude each other, and that whoever comes first is served
// first is what a queue is for. Sums and updates of an optimizer commute but for rounding; that a
// read sees the updates served so far, and no others, is what asynchronous training means by
// staleness. So a segment may have several last writers, all of one queue.
//
// A posted transfer has read its source when its stream is free, and has written its target when it
// has arrived. Behind it on its connection the next arrives later, so writes there are in order.
#include "sim/program/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

#include "sim/program/happens_before.hpp"

namespace rehearse {

namespace {

class RaceFinder {
 public:
  RaceFinder(const Program& program, std::size_t most)
      : program_{program}, order_{program}, most_{most} {}

  std::vector<Race> run() {
    for (const OpId id : order_.order()) {
      order_.advance(id);
      visit(id);
      if (races_.size() >= most_) break;
    }
    return std::move(races_);
  }

 private:
  struct Segment {
    std::int64_t end = 0;
    std::vector<OpId> writers, readers;
  };
  using Segments = std::map<std::int64_t, Segment>;  // by first byte, not overlapping

  void visit(OpId id) {
    const Program::Op& op = program_[id];
    switch (op.kind) {
      case WorkKind::marker:
        return;
      case WorkKind::compute:
        for (const Access& access : program_.accesses(op))
          touch(id, op.rank, access.slice, access.writes);
        return;
      case WorkKind::transfer:
        return visit_transfer(id, program_.transfer(op));
      case WorkKind::collective:
        return visit_collective(id, op, program_.collective(op));
    }
  }

  // A sum also reads its target, but a write conflicts with all that a read does.
  void visit_transfer(OpId id, const Transfer& transfer) {
    const Connection& connection = program_[transfer.connection];
    const Slice source = transfer.source(), target = transfer.target();
    if (connection.shape == Connection::Shape::switch_reduce) {
      for (const Rank other : connection.others) touch(id, other, source, false);
    } else {
      touch(id, connection.source, source, false);
    }
    if (connection.shape == Connection::Shape::multicast) {
      for (const Rank other : connection.others) touch(id, other, target, true);
    } else {
      touch(id, connection.target, target, true);
    }
  }

  void visit_collective(OpId id, const Program::Op&, const Collective& work) {
    using enum CollectiveKind;
    const bool has_result = work.kind == all_to_all || work.kind == send_recv;
    for (std::size_t i = 0; i < work.group.size(); ++i) {
      const bool is_root = i == work.root;
      const bool writes_data = work.kind == broadcast ? !is_root
                               : work.kind == reduce  ? is_root
                                                      : !has_result;
      touch(id, work.group[i], work.data, writes_data);
      if (has_result) touch(id, work.group[i], work.result, true);
    }
  }

  void touch(OpId id, Rank rank, const Slice& slice, bool writes) {
    if (slice.size <= Bytes{0}) return;
    const std::uint64_t key = static_cast<std::uint64_t>(index(rank)) << 32 | index(slice.buffer);
    Segments& segments = segments_[key];
    const std::int64_t begin = slice.offset.count(), end = (slice.offset + slice.size).count();
    const auto first = cut(segments, begin), last = cut(segments, end);
    for (auto at = first; at != last; ++at) check(id, rank, slice.buffer, *at, writes);
    if (writes && !is_queue(program_[id].stream)) {
      segments.erase(first, last);
      segments.emplace_hint(last, begin, Segment{end, {id}, {}});
    } else if (writes) {
      write_on_queue(id, segments, first, last, begin, end);
    } else {
      read(id, segments, first, last, begin, end);
    }
  }

  // The first segment at or after `at`, none reaching across it.
  static Segments::iterator cut(Segments& segments, std::int64_t at) {
    const auto next = segments.lower_bound(at);
    if (next == segments.begin()) return next;
    const auto before = std::prev(next);
    if (before->second.end <= at) return next;
    Segment tail = before->second;
    before->second.end = at;
    return segments.emplace_hint(next, at, std::move(tail));
  }

  void read(OpId id, Segments& segments, Segments::iterator first, Segments::iterator last,
            std::int64_t begin, std::int64_t end) {
    for (auto at = first; at != last; ++at) {
      if (begin < at->first) segments.emplace_hint(at, begin, Segment{at->first, {}, {id}});
      std::vector<OpId>& readers = at->second.readers;
      std::erase_if(readers, [&](OpId reader) {
        return order_.left_before(reader) && stands_for(id, reader);
      });
      readers.push_back(id);
      begin = at->second.end;
    }
    if (begin < end) segments.emplace_hint(last, begin, Segment{end, {}, {id}});
  }

  // Whoever comes after an op comes after all that it came after, unless a queue lets it off the
  // order: then those before count themselves, but for others of that queue.
  bool stands_for(OpId id, OpId earlier) const {
    return !is_queue(program_[id].stream) || order_.excludes(earlier);
  }

  void write_on_queue(OpId id, Segments& segments, Segments::iterator first,
                      Segments::iterator last, std::int64_t begin, std::int64_t end) {
    for (auto at = first; at != last; ++at) {
      if (begin < at->first) segments.emplace_hint(at, begin, Segment{at->first, {id}, {}});
      Segment& segment = at->second;
      const auto known = [&](OpId earlier) {
        return order_.before(earlier) && stands_for(id, earlier);
      };
      std::erase_if(segment.writers, known);
      std::erase_if(segment.readers, known);
      segment.writers.push_back(id);
      begin = segment.end;
    }
    if (begin < end) segments.emplace_hint(last, begin, Segment{end, {id}, {}});
  }

  void check(OpId id, Rank rank, Buffer buffer, const Segments::value_type& segment, bool writes) {
    const Segment& state = segment.second;
    const Bytes begin{segment.first}, end{state.end};
    for (const OpId writer : state.writers)
      if (writer != id && !order_.excludes(writer) &&
          !(writes ? order_.before_arrival(writer) : order_.before(writer)))
        report({writer, id, true, writes, rank, buffer, begin, end});
    if (!writes) return;
    for (const OpId reader : state.readers)
      if (reader != id && !order_.excludes(reader) && !order_.left_before(reader))
        report({reader, id, false, true, rank, buffer, begin, end});
  }

  // Neighbouring segments of the same pair are one race with a longer range.
  void report(const Race& race) {
    if (!races_.empty()) {
      Race& last = races_.back();
      Race longer = last;
      longer.end = race.end;
      Race same = race;
      same.begin = last.begin;
      if (last.end == race.begin && longer == same) {
        last = longer;
        return;
      }
    }
    if (races_.size() < most_) races_.push_back(race);
  }

  const Program& program_;
  HappensBefore order_;
  std::size_t most_;
  std::vector<Race> races_;
  std::unordered_map<std::uint64_t, Segments> segments_;  // by rank and buffer; never iterated
};

}  // namespace

std::vector<Race> find_races(const Program& program, std::size_t most) {
  return RaceFinder{program, most}.run();
}

std::optional<Race> verify(const Program& program) {
  const std::vector<Race> races = find_races(program, 1);
  if (races.empty()) return std::nullopt;
  return races.front();
}

std::string describe(const Program& program, const Race& race) {
  const auto verb = [](bool writes) { return writes ? "writes" : "reads"; };
  return fmt::format("{} {} and {} {} rank {} buffer {} [{}, {}), in no certain order",
                     program.describe(race.first), verb(race.first_writes),
                     program.describe(race.second), verb(race.second_writes), index(race.rank),
                     index(race.buffer), race.begin.count(), race.end.count());
}

}  // namespace rehearse
