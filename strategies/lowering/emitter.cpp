// The ops of a step, representative by representative.
#include "strategies/lowering/emitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rehearse {

namespace {

std::size_t at_lane(Lane lane) { return static_cast<std::size_t>(lane); }
Stream stream_of(Lane lane) { return comm_lane(at_lane(lane)); }

/// "stage 3, 7"; ranks of one stage that are not alike differ in where they stand.
std::string role_name(const FoldedRanks& folded, std::size_t which, const Schedule& schedule) {
  const FoldedRanks::Representative& one = folded.representatives[which];
  const std::uint32_t place = one.pipeline_rank;
  std::string name;
  for (std::uint32_t s = 0; s < schedule.stages; ++s)
    if (schedule.rank_of[s] == place)
      name +=
          fmt::format("{}{}", name.empty() ? (schedule.stages > 1 ? "stage " : "all ranks") : ", ",
                      schedule.stages > 1 ? std::to_string(s) : "");
  if (folded.begin[place + 1] - folded.begin[place] > 1)
    name += fmt::format(" as rank {}", index(one.rank));
  return name;
}

}  // namespace

Emitter::Emitter(const StepPlan& plan, const FoldedRanks& folded, StepNetwork& network,
                 const Options& options)
    : plan_{plan},
      folded_{folded},
      network_{network},
      options_{options},
      tapes_{plan, network, folded},
      ranks_(folded.begin.size() - 1),
      handovers_{handovers_of(plan.schedule)} {
  for (Progress& rank : ranks_) rank.beside.fill(no_op);
  Program& program = step_.program;
  program.protocols = network.topology().protocols;
  names_.pieces.resize(plan.pieces.size());
  for (std::size_t p = 0; p <= static_cast<std::size_t>(Phase::hand_over); ++p)
    names_.phases.push_back(program.name(to_string(static_cast<Phase>(p))));
  for (std::uint32_t u = 0; u < plan.uses.size(); ++u) {
    names_.uses.push_back(program.name(to_string(plan.uses[u].kind)));
    collectives_.emplace_back(folded.traffic[u].groups.size());
  }
  names_.sends = {program.name("SEND_F"), program.name("SEND_B")};
  for (std::size_t r = 0; r < folded.representatives.size(); ++r) {
    const FoldedRanks::Representative& one = folded.representatives[r];
    step_.roles.push_back({.name = role_name(folded, r, plan.schedule),
                           .rank = one.rank,
                           .ranks = one.ranks,
                           .pipeline_rank = one.pipeline_rank,
                           .at_rest = {},
                           .changes = {}});
  }
}

void Emitter::at(std::uint32_t pipeline_rank, std::uint32_t stage, std::uint32_t microbatch) {
  here_ = {pipeline_rank, stage, microbatch, false, {}, here_.first_of_layers};
  note_.stage = stage;
}

void Emitter::at_rest(std::uint32_t pipeline_rank) {
  const std::vector<std::uint32_t>& rank_of = plan_.schedule.rank_of;
  const auto stage = std::find(rank_of.begin(), rank_of.end(), pipeline_rank) - rank_of.begin();
  at(pipeline_rank, static_cast<std::uint32_t>(stage), 0);
  here_.is_at_rest = true;
}

void Emitter::began(const Ops& ops) {
  if (here_.first.first == no_op) here_.first = ops;
  if (here_.first_of_layers.first == no_op) here_.first_of_layers = ops;
}

void Emitter::went_on_to(const Ops& ops) {
  began(ops);
  here().last = ops;
}

OpId Emitter::op_for(const Ops& ops, std::uint32_t representative) const {
  std::uint32_t offset = representative - folded_.begin[here_.pipeline_rank];
  if (ops.traffic != FoldedRanks::none) {
    const FoldedRanks::GroupSet& set = folded_.traffic[ops.traffic];
    offset = ops.traffic < plan_.uses.size() ? set.in_rank[here_.pipeline_rank].op_of[offset]
                                             : set.arrival[representative];
  }
  ASSERT(offset != FoldedRanks::none);
  return static_cast<OpId>(index(ops.first) + offset);
}

void Emitter::wait_for(const Ops& ops) {
  if (ops.first == no_op) return;
  here().waits.push_back(ops);
  for (OpId& beside : here().beside)
    if (beside == ops.first) beside = no_op;
}

// What was remembered of exchanges and kernels together holds for kernels as planned, while no
// exchange of another lane is under way.
bool Emitter::merges_exchanges() const {
  const auto& beside = ranks_[here_.pipeline_rank].beside;
  return options_.is_ideal &&
         std::all_of(beside.begin(), beside.end(), [](OpId op) { return op == no_op; });
}

void Emitter::add_waits(std::uint32_t representative) {
  for (const Ops& wait : here().waits) {
    const OpId op = op_for(wait, representative);
    if (std::find(after_.begin(), after_.end(), op) == after_.end()) after_.push_back(op);
  }
}

void Emitter::run(const Tape& tape, std::size_t begin_layer, std::size_t end_layer) {
  const std::size_t begin = begin_layer == 0 ? 0 : tape.layer_end[begin_layer - 1];
  const std::size_t end = end_layer == 0 ? 0 : tape.layer_end[end_layer - 1];
  here_.first_of_layers = {};
  if (options_.grain == Grain::kernels) {
    about(Purpose::layer);
    std::size_t layer = begin_layer;
    for (std::size_t i = begin; i < end; ++i) {
      while (tape.layer_end[layer] <= i) ++layer;
      // Only forward tapes go from the first layer to the last.
      note_.layer = static_cast<std::uint32_t>(
          tape.steps[i].phase == Phase::forward ? layer : tape.layer_end.size() - 1 - layer);
      run_step(tape.steps[i], tape.steps[i].beside);
    }
  } else {
    for (const Stretch& stretch : tapes_.of(tape, begin, end, merges_exchanges()))
      stretch.is_merged ? run_merged(stretch)
                        : run_step(*stretch.step, stretch.step->beside > 0 ? 1 : 0);
  }
  ASSERT(beside_kernels_.left == 0);
  if (!beside_kernels_.is_done) join(tape.steps[end - 1].phase);
}

// Layers end when an exchange beside their last kernels has ended, too.
void Emitter::join(Phase phase) {
  const Ops ops{next_op(), FoldedRanks::none};
  const std::uint32_t begin = folded_.begin[here_.pipeline_rank];
  for (std::uint32_t r = begin; r < folded_.begin[here_.pipeline_rank + 1]; ++r) {
    after_.clear();
    add_waits(r);
    step_.program.add_marker(folded_.representatives[r].rank, Stream::compute,
                             label(names_.phases[static_cast<std::size_t>(phase)]), after_);
    tag(phase, false, {}, {});
  }
  here().waits.clear();
  beside_kernels_.is_done = true;
  went_on_to(ops);
}

void Emitter::run_step(const TapeStep& step, std::uint32_t beside) {
  const std::uint32_t name = name_of(step.piece);
  if (const auto* work = std::get_if<Compute>(&plan_.pieces[step.piece].work)) {
    Compute all = *work;
    all.fixed += step.extra;
    return compute(name, all, step.phase);
  }
  const Ops ops = exchange_ops(step.use, Lane::layer, step.phase, name, last());
  if (beside > 0) {
    began(ops);
    beside_kernels_ = {ops, beside, false};
    return;
  }
  here().waits = {ops};
  beside_kernels_.is_done = true;
  went_on_to(ops);
}

void Emitter::run_merged(const Stretch& stretch) {
  const OpId first = next_op();
  compute(names_.phases[static_cast<std::size_t>(stretch.step->phase)], {.fixed = stretch.time},
          stretch.step->phase);
  const auto is_zero = [](Time time) { return time == Time{}; };
  if (options_.is_ideal &&
      std::all_of(stretch.exchanged.begin(), stretch.exchanged.end(), is_zero) &&
      std::all_of(stretch.hidden.begin(), stretch.hidden.end(), is_zero))
    return;
  for (OpId op = first; op < next_op(); op = static_cast<OpId>(index(op) + 1))
    step_.merged.push_back({.op = op,
                            .exchanged = stretch.exchanged,
                            .hidden = stretch.hidden,
                            .kernels = options_.is_ideal ? std::vector<Time>{} : stretch.kernels});
}

std::uint32_t Emitter::name_of(PieceId piece) {
  std::optional<std::uint32_t>& name = names_.pieces[static_cast<std::size_t>(piece)];
  if (!name) name = step_.program.name(plan_.pieces[piece].name);
  return *name;
}

void Emitter::compute(std::uint32_t name, const Compute& work, Phase phase) {
  const OpId first = next_op();
  const std::uint32_t begin = folded_.begin[here_.pipeline_rank];
  for (std::uint32_t r = begin; r < folded_.begin[here_.pipeline_rank + 1]; ++r) {
    after_.clear();
    add_waits(r);
    step_.program.add_compute(folded_.representatives[r].rank, Stream::compute, label(name), work,
                              after_);
    tag(phase, false, {}, {});
  }
  here().waits.clear();
  went_on_to({first, FoldedRanks::none});
  if (beside_kernels_.left == 0)
    beside_kernels_.is_done = true;
  else if (--beside_kernels_.left == 0)
    here().waits = {beside_kernels_.exchange};
}

Emitter::Ops Emitter::kernel(const Piece& piece, Phase phase) {
  compute(step_.program.name(piece.name), std::get<Compute>(piece.work), phase);
  return last();
}

Emitter::Ops Emitter::exchange(std::uint32_t use, Lane lane, Phase phase) {
  return exchange_after(use, lane, phase, last());
}

Emitter::Ops Emitter::exchange_after(std::uint32_t use, Lane lane, Phase phase, const Ops& after) {
  const Ops ops = exchange_ops(use, lane, phase, names_.uses[use], after);
  here().beside[at_lane(lane)] = ops.first;
  return ops;
}

Emitter::Ops Emitter::communicate(std::uint32_t traffic, Bytes size, bool is_joint) {
  const OpId first = next_op();
  step_.communications.push_back(
      {first, traffic, here_.pipeline_rank, size, is_joint, here_.is_at_rest});
  return {first, traffic};
}

Emitter::Ops Emitter::exchange_ops(std::uint32_t use, Lane lane, Phase phase, std::uint32_t name,
                                   const Ops& after) {
  const Ops ops = communicate(use, plan_.uses[use].size);
  const Ops before = std::exchange(here().on_lane[at_lane(lane)], ops);
  for (const std::uint32_t group : folded_.traffic[use].in_rank[here_.pipeline_rank].groups) {
    after_.clear();
    for (const std::uint32_t member : folded_.traffic[use].groups[group].representatives) {
      follow_on_lane(before, use, member);
      if (after.first != no_op) after_.push_back(op_for(after, member));
      if (lane == Lane::layer) add_waits(member);
    }
    add_exchange(use, group, lane, phase, name);
  }
  return ops;
}

// An exchange takes its turn on the lane of its first rank. Where the groups were others before,
// its other ranks have a turn to wait for as well.
void Emitter::follow_on_lane(const Ops& before, std::uint32_t use, std::uint32_t representative) {
  if (before.first == no_op) return;
  if (plan_.uses[before.traffic].family != plan_.uses[use].family)
    after_.push_back(op_for(before, representative));
}

Emitter::Ops Emitter::exchange_of_all(std::uint32_t use, Phase phase) {
  const std::vector<FoldedRanks::Group>& groups = folded_.traffic[use].groups;
  const Ops ops = communicate(use, plan_.uses[use].size, true);
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    const std::vector<std::uint32_t>& members = groups[group].representatives;
    after_.clear();
    for (std::uint32_t r = 0; r < folded_.representatives.size(); ++r) {
      here_.pipeline_rank = folded_.representatives[r].pipeline_rank;
      const bool is_member = std::find(members.begin(), members.end(), r) != members.end();
      if (!is_member && plan_.uses[use].family != Family::ends) continue;
      if (last().first != no_op) after_.push_back(op_for(last(), r));
      if (is_member) add_waits(r);
    }
    at_rest(folded_.representatives[members.front()].pipeline_rank);
    add_exchange(use, group, lane_of(use), phase, names_.uses[use]);
  }
  return ops;
}

void Emitter::add_exchange(std::uint32_t use, std::uint32_t group, Lane lane, Phase phase,
                           std::uint32_t name) {
  const CollectiveUse& wanted = plan_.uses[use];
  std::optional<Collective>& work = collectives_[use][group];
  if (!work) {
    const FoldedRanks::Group& members = folded_.traffic[use].groups[group];
    const RememberedCollective& cost = network_.use(wanted).entries[members.entry].cost;
    work = {.kind = wanted.kind,
            .group = {},
            .data = {static_cast<Buffer>(2 * use), Bytes{0}, wanted.size},
            .result = {static_cast<Buffer>(2 * use + 1), Bytes{0}, wanted.size},
            .algorithm = std::string(cost.algorithm),
            .protocol = cost.protocol};
    for (const std::uint32_t member : members.representatives)
      work->group.push_back(folded_.representatives[member].rank);
  }
  step_.program.add_collective(stream_of(lane), label(name), *work, after_);
  tag(phase, true, dimension_of(wanted.family), wanted.size);
}

Emitter::Ops Emitter::send(std::uint32_t target, Lane lane, Bytes size) {
  const StepNetwork::Handover handover{here_.pipeline_rank, target, lane};
  const auto found = std::find(handovers_.begin(), handovers_.end(), handover);
  ASSERT(found != handovers_.end());
  const auto traffic = static_cast<std::uint32_t>(
      plan_.uses.size() + static_cast<std::size_t>(found - handovers_.begin()));
  const Ops ops = communicate(traffic, size);
  about(Purpose::hand_over);
  // A buffer for each direction, after those of the collectives.
  const bool is_backward = lane == Lane::backward;
  const auto buffer = static_cast<Buffer>(2 * plan_.uses.size() + (is_backward ? 2 : 0));
  const double payload = message_protocol(network_.topology()).payload;
  const Bytes wire{static_cast<std::int64_t>(static_cast<double>(size.count()) / payload)};
  for (const std::uint32_t group : folded_.traffic[traffic].in_rank[here_.pipeline_rank].groups) {
    const std::uint32_t sender = folded_.traffic[traffic].groups[group].representatives.front();
    after_.clear();
    if (last().first != no_op) after_.push_back(op_for(last(), sender));
    add_waits(sender);
    step_.program.add_transfer(stream_of(lane), label(names_.sends[is_backward]),
                               {.connection = message_connection(traffic, group, size),
                                .source_buffer = buffer,
                                .target_buffer = static_cast<Buffer>(index(buffer) + 1),
                                .size = size,
                                .wire = wire},
                               after_);
    tag(Phase::hand_over, true, Dimension::pipeline, size);
  }
  return ops;
}

ConnectionId Emitter::message_connection(std::uint32_t traffic, std::uint32_t group, Bytes size) {
  const auto [slot, is_new] = messages_.try_emplace({traffic, group, size.count()});
  if (!is_new) return slot->second;
  const std::vector<std::uint32_t>& ends = folded_.traffic[traffic].groups[group].representatives;
  return slot->second =
             step_.program.connect({.source = folded_.representatives[ends[0]].rank,
                                    .target = folded_.representatives[ends[1]].rank,
                                    .protocol = message_protocol_number(network_.topology())});
}

void Emitter::tag(Phase phase, bool communicates, Dimension dimension, Bytes bytes) {
  step_.tags.push_back({phase, communicates, dimension, here_.stage, here_.microbatch, bytes});
  if (options_.notes) step_.notes.push_back(note_);
}

void Emitter::memory(const Ops& ops, bool at_end, MemoryKind kind, Bytes bytes) {
  if (bytes == Bytes{0} || ops.first == no_op) return;
  const std::uint32_t begin = folded_.begin[here_.pipeline_rank];
  for (std::uint32_t r = begin; r < folded_.begin[here_.pipeline_rank + 1]; ++r)
    step_.roles[r].changes.push_back({op_for(ops, r), at_end, kind, bytes});
}

void Emitter::note_action(const Action& action, OpId begin) {
  step_.actions.resize(ranks_.size());
  step_.actions[here_.pipeline_rank].push_back({action, begin, next_op()});
}

void Emitter::hold(std::uint32_t pipeline_rank, MemoryKind kind, Bytes bytes) {
  for (std::uint32_t r = folded_.begin[pipeline_rank]; r < folded_.begin[pipeline_rank + 1]; ++r)
    step_.roles[r].at_rest[static_cast<std::size_t>(kind)] += bytes;
}

}  // namespace rehearse
