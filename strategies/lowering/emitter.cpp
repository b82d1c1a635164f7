// The ops of a step, representative by representative.
#include "strategies/lowering/emitter.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace rehearse {

namespace {

std::size_t at_lane(Lane lane) { return static_cast<std::size_t>(lane); }

}  // namespace

Emitter::Emitter(const StepPlan& plan, StepNetwork& network, const LowerOptions& options)
    : plan_{plan},
      network_{network},
      options_{options},
      imperfections_{plan.scenario.imperfection, plan.placement.world()},
      handovers_{handovers_of()},
      folded_{network.cast(plan.uses, handovers_,
                           options.fold && !imperfections_.distinguishes_ranks(),
                           imperfections_.colours())} {
  const std::size_t places = folded_.begin.size() - 1;
  exchanges_.resize(places);
  names_.resize(plan.pieces.size());
  last_.resize(places);
  waits_.resize(places);
  beside_.resize(places);
  for (auto& lanes : beside_) lanes.fill(no_op);
  on_lane_.resize(places);
  for (const CollectiveUse& use : plan.uses) costs_.push_back(&network.use(use));
  for (std::size_t u = 0; u < plan.uses.size(); ++u)
    connections_.emplace_back(folded_.traffic[u].groups.size(), no_connection);
  for (std::size_t p = 0; p <= static_cast<std::size_t>(Phase::hand_over); ++p)
    phase_names_.push_back(step_.program.name(to_string(static_cast<Phase>(p))));
  for (const CollectiveUse& use : plan.uses)
    kind_names_.push_back(step_.program.name(to_string(use.kind)));
  send_names_ = {step_.program.name("SEND_F"), step_.program.name("SEND_B")};
  for (std::uint32_t a = 0; a < folded_.representatives.size(); ++a) {
    const FoldedRanks::Representative& representative = folded_.representatives[a];
    step_.roles.push_back({.name = {},
                           .rank = representative.rank,
                           .ranks = representative.ranks,
                           .pipeline_rank = representative.pipeline_rank,
                           .at_rest = {},
                           .changes = {}});
  }
}

// Every pair of pipeline ranks that neighbouring stages lie on, in both directions.
std::vector<StepNetwork::Handover> Emitter::handovers_of() const {
  std::set<StepNetwork::Handover> pairs;
  for (std::uint32_t s = 0; s + 1 < plan_.schedule.stages; ++s) {
    const std::uint32_t here = plan_.schedule.rank_of[s], there = plan_.schedule.rank_of[s + 1];
    if (here == there) continue;
    pairs.insert({here, there, Lane::forward});
    pairs.insert({there, here, Lane::backward});
  }
  return {pairs.begin(), pairs.end()};
}

void Emitter::at(std::uint32_t pipeline_rank, std::uint32_t stage, std::uint32_t microbatch) {
  place_ = pipeline_rank;
  stage_ = stage;
  microbatch_ = microbatch;
  note_.stage = stage;
  first_ = {};
  is_at_rest_ = false;
}

void Emitter::at_rest(std::uint32_t pipeline_rank) {
  const std::vector<std::uint32_t>& rank_of = plan_.schedule.rank_of;
  const auto stage = std::find(rank_of.begin(), rank_of.end(), pipeline_rank) - rank_of.begin();
  at(pipeline_rank, static_cast<std::uint32_t>(stage), 0);
  is_at_rest_ = true;
}

void Emitter::began(const Ops& ops) {
  if (first_.first == no_op) first_ = ops;
  if (first_of_layers_.first == no_op) first_of_layers_ = ops;
}

void Emitter::went_on_to(const Ops& ops) {
  began(ops);
  last_[place_] = ops;
}

OpId Emitter::op_for(const Ops& ops, std::uint32_t representative) const {
  std::uint32_t offset = representative - folded_.begin[place_];
  if (ops.traffic != FoldedRanks::none)
    offset = ops.traffic < plan_.uses.size()
                 ? folded_.traffic[ops.traffic].in_rank[place_].op_of[offset]
                 : folded_.traffic[ops.traffic].arrival[representative];
  ASSERT(offset != FoldedRanks::none);
  return static_cast<OpId>(index(ops.first) + offset);
}

void Emitter::wait_for(const Ops& ops) {
  if (ops.first == no_op) return;
  waits_[place_].push_back(ops);
  for (OpId& beside : beside_[place_])
    if (beside == ops.first) beside = no_op;
}

bool Emitter::has_exchange_beside() const {
  return std::any_of(beside_[place_].begin(), beside_[place_].end(),
                     [](OpId op) { return op != no_op; });
}

// What was remembered of exchanges and kernels together holds for kernels as planned.
bool Emitter::merges_exchanges() const {
  return imperfections_.is_ideal() && !has_exchange_beside();
}

void Emitter::add_waits(std::uint32_t representative) {
  for (const Ops& wait : waits_[place_]) {
    const OpId op = op_for(wait, representative);
    if (std::find(after_.begin(), after_.end(), op) == after_.end()) after_.push_back(op);
  }
}

void Emitter::run(const Tape& tape, std::size_t begin_layer, std::size_t end_layer) {
  const std::size_t begin = begin_layer == 0 ? 0 : tape.layer_end[begin_layer - 1];
  const std::size_t end = end_layer == 0 ? 0 : tape.layer_end[end_layer - 1];
  first_of_layers_ = {};
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
    for (const Block& block : blocks(tape, begin, end, merges_exchanges())) {
      if (block.merged)
        run_merged(block);
      else
        run_step(*block.step, block.step->beside > 0 ? 1 : 0);
    }
  }
  ASSERT(beside_kernels_.left == 0);
  if (!beside_kernels_.is_done) join(tape.steps[end - 1].phase);
}

// Layers end when an exchange beside their last kernels has ended, too.
void Emitter::join(Phase phase) {
  const Ops ops{next_op(), FoldedRanks::none};
  for (std::uint32_t a = folded_.begin[place_]; a < folded_.begin[place_ + 1]; ++a) {
    after_.clear();
    add_waits(a);
    step_.program.add_marker(folded_.representatives[a].rank, Stream::compute,
                             {phase_names_[static_cast<std::size_t>(phase)], microbatch_}, after_);
    tag(phase, false, {}, {});
  }
  waits_[place_].clear();
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
    note_beside_kernels(step.use);
    beside_kernels_ = {ops, beside, false};
    return;
  }
  waits_[place_] = {ops};
  beside_kernels_.is_done = true;
  went_on_to(ops);
}

void Emitter::run_merged(const Block& block) {
  const Ops ops{next_op(), FoldedRanks::none};
  compute(phase_names_[static_cast<std::size_t>(block.step->phase)], {.fixed = block.time},
          block.step->phase);
  const auto is_zero = [](Time time) { return time == Time{}; };
  const bool is_ideal = imperfections_.is_ideal();
  if (is_ideal && std::all_of(block.exchanged.begin(), block.exchanged.end(), is_zero) &&
      std::all_of(block.hidden.begin(), block.hidden.end(), is_zero))
    return;
  for (std::uint32_t k = 0; k < representatives(); ++k)
    step_.merged.push_back({.op = static_cast<OpId>(index(ops.first) + k),
                            .exchanged = block.exchanged,
                            .hidden = block.hidden,
                            .kernels = is_ideal ? std::vector<Time>{} : block.kernels});
}

std::uint32_t Emitter::name_of(PieceId piece) {
  std::optional<std::uint32_t>& name = names_[static_cast<std::size_t>(piece)];
  if (!name) name = step_.program.name(plan_.pieces[piece].name);
  return *name;
}

void Emitter::compute(std::uint32_t name, const Compute& work, Phase phase) {
  const OpId first = next_op();
  for (std::uint32_t a = folded_.begin[place_]; a < folded_.begin[place_ + 1]; ++a) {
    after_.clear();
    add_waits(a);
    step_.program.add_compute(folded_.representatives[a].rank, Stream::compute, {name, microbatch_},
                              work, after_);
    tag(phase, false, {}, {});
  }
  waits_[place_].clear();
  went_on_to({first, FoldedRanks::none});
  if (beside_kernels_.left == 0)
    beside_kernels_.is_done = true;
  else if (--beside_kernels_.left == 0)
    waits_[place_] = {beside_kernels_.exchange};
}

Emitter::Ops Emitter::kernel(const Piece& piece, Phase phase) {
  compute(step_.program.name(piece.name), std::get<Compute>(piece.work), phase);
  return last();
}

Emitter::Ops Emitter::exchange(std::uint32_t use, Lane lane, Phase phase) {
  return exchange_after(use, lane, phase, last());
}

Emitter::Ops Emitter::exchange_after(std::uint32_t use, Lane lane, Phase phase, const Ops& after) {
  const Ops ops = exchange_ops(use, lane, phase, kind_names_[use], after);
  beside_[place_][at_lane(lane)] = ops.first;
  if (!is_at_rest_) note_beside_kernels(use);
  return ops;
}

Emitter::Ops Emitter::exchange_ops(std::uint32_t use, Lane lane, Phase phase, std::uint32_t name,
                                   const Ops& after) {
  const Ops ops{next_op(), use};
  const Ops before = std::exchange(on_lane_[place_][at_lane(lane)], ops);
  ++exchanges_[place_];
  if (options_.count_links) count_.exchange(use, place_);
  for (const std::uint32_t number : folded_.traffic[use].in_rank[place_].groups) {
    const FoldedRanks::Group& group = folded_.traffic[use].groups[number];
    after_.clear();
    for (const std::uint32_t representative : group.representatives) {
      follow_on_lane(before, use, representative);
      if (after.first != no_op) after_.push_back(op_for(after, representative));
      if (lane == Lane::layer) add_waits(representative);
    }
    add_exchange(use, group, number, lane, {name, microbatch_});
    tag(phase, true, dimension_of(plan_.uses[use].family), plan_.uses[use].size);
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
  const Lane lane = lane_of(use);
  const std::vector<FoldedRanks::Group>& groups = folded_.traffic[use].groups;
  const Ops ops{next_op(), use};
  for (std::uint64_t& number : exchanges_) ++number;
  if (options_.count_links) count_.exchange_of_all(use);
  for (std::uint32_t number = 0; number < groups.size(); ++number) {
    const std::vector<std::uint32_t>& members = groups[number].representatives;
    after_.clear();
    for (std::uint32_t representative = 0; representative < folded_.representatives.size();
         ++representative) {
      place_ = folded_.representatives[representative].pipeline_rank;
      const bool is_member =
          std::find(members.begin(), members.end(), representative) != members.end();
      if (!is_member && plan_.uses[use].family != Family::ends) continue;
      if (last().first != no_op) after_.push_back(op_for(last(), representative));
      if (is_member) add_waits(representative);
    }
    at_rest(folded_.representatives[members.front()].pipeline_rank);
    ++exchanges_[place_];
    add_exchange(use, groups[number], number, lane, {kind_names_[use], microbatch_});
    tag(phase, true, dimension_of(plan_.uses[use].family), plan_.uses[use].size);
  }
  return ops;
}

Emitter::Ops Emitter::send(std::uint32_t target, Lane lane, Bytes size) {
  const auto handover =
      std::find(handovers_.begin(), handovers_.end(), StepNetwork::Handover{place_, target, lane});
  ASSERT(handover != handovers_.end());
  const auto earlier = static_cast<std::size_t>(handover - handovers_.begin());
  const auto traffic = static_cast<std::uint32_t>(plan_.uses.size() + earlier);
  const Ops ops{next_op(), traffic};
  ++exchanges_[place_];
  about(Purpose::hand_over);
  if (options_.count_links) count_.message(*handover, size);
  const std::uint32_t name = send_names_[lane == Lane::backward];
  for (const std::uint32_t number : folded_.traffic[traffic].in_rank[place_].groups) {
    const std::uint32_t representative =
        folded_.traffic[traffic].groups[number].representatives.front();
    after_.clear();
    if (last().first != no_op) after_.push_back(op_for(last(), representative));
    add_waits(representative);
    add_message(traffic, number, lane, {name, microbatch_}, size);
    tag(Phase::hand_over, true, Dimension::pipeline, size);
  }
  return ops;
}

void Emitter::tag(Phase phase, bool communicates, Dimension dimension, Bytes bytes) {
  step_.tags.push_back({phase, communicates, dimension, stage_, microbatch_, bytes});
  if (options_.notes) step_.notes.push_back(note_);
}

void Emitter::memory(const Ops& ops, bool at_end, MemoryKind kind, Bytes bytes) {
  if (bytes == Bytes{0} || ops.first == no_op) return;
  for (std::uint32_t a = folded_.begin[place_]; a < folded_.begin[place_ + 1]; ++a)
    step_.roles[a].changes.push_back({op_for(ops, a), at_end, kind, bytes});
}

void Emitter::note_action(const Action& action, OpId begin) {
  step_.actions.resize(folded_.begin.size() - 1);
  step_.actions[place_].push_back({action, begin, next_op()});
}

void Emitter::hold(std::uint32_t pipeline_rank, MemoryKind kind, Bytes bytes) {
  for (std::uint32_t a = folded_.begin[pipeline_rank]; a < folded_.begin[pipeline_rank + 1]; ++a)
    step_.roles[a].at_rest[static_cast<std::size_t>(kind)] += bytes;
}

}  // namespace rehearse
