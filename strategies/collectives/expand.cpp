// Expansion keeps the order of ops. A collective occupies its stream on every rank of its group, so
// for each (rank, stream) the pass remembers which ops the next one there must wait for.
#include "strategies/collectives/expand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "sim/base/error.hpp"
#include "strategies/collectives/launch.hpp"
#include "strategies/collectives/rehearsal.hpp"

namespace rehearse {

namespace {

enum class Parts : std::uint8_t { transfers, library_calls };

class Expansion {
 public:
  Expansion(const Program& program, Routing& routing, Parts parts)
      : program_{program},
        routing_{routing},
        into_{parts},
        first_lane_{first_free_lane()},
        first_scratch_{first_free_buffer()} {
    ASSERT(program.folded.empty());
    for (const Connection& connection : program.connections()) out_.connect(connection);
    for (const std::string& name : program.names()) out_.name(name);
    out_.protocols = program.protocols;
    if (!program.protocols.empty() && program.protocols != routing.topology().protocols)
      throw InputError(
          "the program's protocols are not the machine's, in which its collectives "
          "would be expanded");
  }

  std::optional<Expanded> run(std::size_t most_ops) {
    std::vector<OpId> origin;
    for (std::size_t i = 0; i < program_.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      if (program_[id].kind == WorkKind::collective)
        into_ == Parts::library_calls ? split(id) : expand(id);
      else
        copy(id);
      if (out_.size() > most_ops) return std::nullopt;
      origin.resize(out_.size(), id);
    }
    out_.protocols =
        program_.protocols.empty() ? routing_.topology().protocols : program_.protocols;
    return Expanded{std::move(out_), std::move(origin), std::move(library_parts_)};
  }

 private:
  using Queue = std::pair<Rank, Stream>;

  std::size_t first_free_lane() const {
    std::size_t free = index(Stream::comm);
    for (const Program::Op& op : program_.ops())
      if (!is_queue(op.stream)) free = std::max(free, index(op.stream) + 1);
    return free - index(Stream::comm);
  }

  // Scratch of an expanded collective must not be anybody's data.
  std::size_t first_free_buffer() const {
    std::size_t free = 0;
    const auto see = [&](Buffer buffer) { free = std::max(free, index(buffer) + 1); };
    for (const Program::Op& op : program_.ops()) {
      if (op.kind == WorkKind::transfer) {
        see(program_.transfer(op).source_buffer);
        see(program_.transfer(op).target_buffer);
      } else if (op.kind == WorkKind::collective) {
        see(program_.collective(op).data.buffer);
        see(program_.collective(op).result.buffer);
      } else if (op.kind == WorkKind::compute) {
        for (const Access& access : program_.accesses(op)) see(access.slice.buffer);
      }
    }
    return free;
  }

  // What op `id` waits for on `rank`, in the new program.
  std::vector<OpId> inputs_of(OpId id, Rank rank) const {
    std::set<OpId> inputs;
    for (const OpId before : program_.after(id)) {
      if (const auto found = parts_.find(before); found != parts_.end()) {
        const auto own = found->second.find(rank);
        if (own != found->second.end()) {
          inputs.insert(own->second.begin(), own->second.end());
          continue;
        }
        for (const auto& [other, ops] : found->second) inputs.insert(ops.begin(), ops.end());
      } else if (program_[id].kind != WorkKind::collective || concerns(before, rank, id)) {
        inputs.insert(copied_.at(before));
      }
    }
    const Queue queue{rank, program_[id].stream};
    if (const auto tail = tails_.find(queue); tail != tails_.end())
      inputs.insert(tail->second.begin(), tail->second.end());
    // Its transfers run on lanes of their own, so what comes before it on the stream must be named.
    if (const auto before = last_copied_.find(queue);
        before != last_copied_.end() && program_[id].kind == WorkKind::collective)
      inputs.insert(before->second);
    return {inputs.begin(), inputs.end()};
  }

  // Whether a rank's part of a collective waits for an op: its own ones, messages to it, and what
  // is no member's business but was named all the same.
  bool concerns(OpId before, Rank rank, OpId collective) const {
    const Program::Op& op = program_[before];
    const auto is_at = [&](Rank where) {
      if (op.rank == where) return true;
      if (op.kind != WorkKind::transfer) return false;
      const Connection& way = program_[program_.transfer(op).connection];
      if (way.shape != Connection::Shape::multicast) return way.target == where;
      return std::find(way.others.begin(), way.others.end(), where) != way.others.end();
    };
    const std::vector<Rank>& group = program_.collective(program_[collective]).group;
    return is_at(rank) || std::none_of(group.begin(), group.end(), is_at);
  }

  void copy(OpId id) {
    const Program::Op& op = program_[id];
    const std::vector<OpId> inputs = inputs_of(id, op.rank);
    OpId made{};
    if (op.kind == WorkKind::marker)
      made = out_.add_marker(op.rank, op.stream, op.label, inputs);
    else if (op.kind == WorkKind::compute)
      made = out_.add_compute(op.rank, op.stream, op.label, program_.compute(op), inputs,
                              program_.accesses(op), program_.calls(op));
    else
      made = out_.add_transfer(op.stream, op.label, program_.transfer(op), inputs);
    copied_.emplace(id, made);
    tails_.erase({op.rank, op.stream});
    last_copied_[{op.rank, op.stream}] = made;
  }

  void expand(OpId id) {
    const Program::Op& op = program_[id];
    const Collective& work = program_.collective(op);
    if (work.algorithm.empty())
      throw InputError(fmt::format("{}: no algorithm was decided for it", program_.describe(id)));
    const CollectiveShape shape{.kind = work.kind, .group = work.group, .root = work.root};
    std::vector<std::vector<OpId>> entry(routing_.topology().rank_count());
    for (const Rank rank : work.group) entry.at(index(rank)) = inputs_of(id, rank);

    const CollectiveRehearsal& rehearsal = rehearsal_of(algorithm(work.algorithm), shape);
    const Room room = room_of(op.stream);
    if (const Time launch = rehearsal.launch(work.protocol); launch > Time{})
      for (const Rank rank : work.group)
        entry[index(rank)] = {add_launch(rank, launch, room.lane, entry[index(rank)])};
    const std::size_t begin = out_.size();
    const Emission emission = rehearsal.emit_into(
        out_, {work.data, work.result, room.scratch},
        {.protocol = work.protocol, .lane = room.lane, .entry = entry, .by_kernels = true});
    combine_as(work, begin);
    for (const Rank rank : work.group) {
      parts_[id][rank] = tails_[{rank, op.stream}] = emission.done(rank);
      last_copied_.erase({rank, op.stream});
    }
  }

  // The library keeps its ranks together; each of them has its own inputs and goes on by itself.
  void split(OpId id) {
    using enum CollectiveKind;
    const Program::Op& op = program_[id];
    const Collective& work = program_.collective(op);
    if (is_queue(op.stream))
      throw InputError("ranks may begin the collectives of a queue in any order, a library's not");
    for (std::uint32_t i = 0; i < work.group.size(); ++i) {
      const bool is_root = i == work.root;
      const bool writes_data = work.kind == broadcast ? !is_root
                               : work.kind == reduce  ? is_root
                                                      : !has_result(work);
      std::vector<Access> accesses{{work.data, writes_data}};
      if (has_result(work)) accesses.push_back({reached(work), true});
      const Rank rank = work.group[i];
      const OpId made =
          out_.add_compute(rank, op.stream, op.label, {}, inputs_of(id, rank), accesses);
      library_parts_.push_back({made, i, work});
      parts_[id][rank] = {made};
      tails_.erase({rank, op.stream});
      last_copied_[{rank, op.stream}] = made;
    }
  }

  OpId add_launch(Rank rank, Time launch, std::size_t lane, std::span<const OpId> after) {
    const auto [known, is_new] = launches_.try_emplace({rank, launch.ps()});
    if (is_new) known->second = connect_launch(out_, rank, launch);
    return out_.add_transfer(comm_lane(lane), {out_.name("launch"), Label::no_number},
                             {.connection = known->second}, after);
  }

  // Algorithms sum fp32; what else a collective combines is the same transfers. What a switch makes
  // replaces what its target had; a maximum may meet it as well, as the target is one of its
  // sources.
  void combine_as(const Collective& work, std::size_t begin) {
    if (work.combine == Combine::sum && work.numbers == Precision::fp32) return;
    for (std::size_t i = begin; i < out_.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      if (out_[id].kind != WorkKind::transfer) continue;
      const Transfer& move = out_.transfer(out_[id]);
      const bool is_reduced = work.combine == Combine::max &&
                              out_[move.connection].shape == Connection::Shape::switch_reduce;
      const bool reduces = move.combine == Combine::sum || is_reduced;
      out_.set_numbers(id, reduces ? work.combine : Combine::overwrite, work.numbers);
    }
  }

  // A step has the same few collectives over and over.
  const CollectiveRehearsal& rehearsal_of(const Algorithm& how, const CollectiveShape& shape) {
    auto& made = rehearsals_[{&how, Key{shape.kind, shape.root, shape.group}}];
    if (!made)
      made = std::make_unique<CollectiveRehearsal>(how, shape, routing_, Detail::transfers);
    return *made;
  }

  // Collectives of one stream follow one another, so they may use the same lanes and scratch.
  struct Room {
    std::size_t lane;
    Buffer scratch;
  };
  Room room_of(Stream stream) {
    constexpr std::size_t most_lanes = 2048, most_scratch = 4;
    const std::size_t which = rooms_.try_emplace(stream, rooms_.size()).first->second;
    return {first_lane_ + which * most_lanes,
            static_cast<Buffer>(first_scratch_ + which * most_scratch)};
  }

  const Program& program_;
  Routing& routing_;
  Parts into_;
  Program out_;
  std::map<OpId, OpId> copied_;
  std::map<OpId, std::map<Rank, std::vector<OpId>>> parts_;  // of expanded collectives
  std::vector<CollectivePart> library_parts_;
  std::map<Queue, std::vector<OpId>> tails_;  // after a collective: what the next op waits for
  std::map<Queue, OpId> last_copied_;         // the op before, where it is no collective
  std::map<Stream, std::size_t> rooms_;       // numbered as they come
  std::map<std::pair<Rank, std::int64_t>, ConnectionId> launches_;  // by how long they take
  std::size_t first_lane_, first_scratch_;
  using Key = std::tuple<CollectiveKind, std::uint32_t, std::vector<Rank>>;
  std::map<std::pair<const Algorithm*, Key>, std::unique_ptr<CollectiveRehearsal>> rehearsals_;
};

}  // namespace

std::optional<Expanded> expand_within(const Program& program, Routing& routing,
                                      std::size_t most_ops) {
  return Expansion(program, routing, Parts::transfers).run(most_ops);
}

Program expand_collectives(const Program& program, Routing& routing) {
  return std::move(expand_within(program, routing, SIZE_MAX)->program);
}

Expanded split_collectives(const Program& program, Routing& routing) {
  return *Expansion(program, routing, Parts::library_calls).run(SIZE_MAX);
}

}  // namespace rehearse
