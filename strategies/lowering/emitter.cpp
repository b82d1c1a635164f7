// The ops of a step, representative by representative.
#include "strategies/lowering/emitter.hpp"

#include <algorithm>
#include <utility>

namespace rehearse {

namespace {

std::size_t at_lane(Lane lane) { return static_cast<std::size_t>(lane); }
}  // namespace

Emitter::Emitter(const StepPlan& plan, const FoldedRanks& folded, StepNetwork& network,
                 const Options& options)
    : plan_{plan},
      folded_{folded},
      options_{options},
      tapes_{plan, network, folded},
      out_{plan, folded, network, options.notes},
      ranks_(folded.begin.size() - 1),
      handovers_{handovers_of(plan.schedule)} {
  for (Progress& rank : ranks_) rank.beside.fill(no_op);
}

void Emitter::at(std::uint32_t pipeline_rank, std::uint32_t stage, std::uint32_t microbatch) {
  out_.at({pipeline_rank, stage, microbatch, false});
  first_ = {};
}

void Emitter::at_rest(std::uint32_t pipeline_rank) {
  const std::vector<std::uint32_t>& rank_of = plan_.schedule.rank_of;
  const auto stage = std::find(rank_of.begin(), rank_of.end(), pipeline_rank) - rank_of.begin();
  out_.at({pipeline_rank, static_cast<std::uint32_t>(stage), 0, true});
  first_ = {};
}

void Emitter::began(const Ops& ops) {
  if (first_.first == no_op) first_ = ops;
  if (first_of_layers_.first == no_op) first_of_layers_ = ops;
}

void Emitter::went_on_to(const Ops& ops) {
  began(ops);
  here().last = ops;
}

OpId Emitter::op_for(const Ops& ops, std::uint32_t representative) const {
  std::uint32_t offset = representative - folded_.begin[pipeline_rank()];
  if (ops.traffic != FoldedRanks::none) {
    const FoldedRanks::GroupSet& set = folded_.traffic[ops.traffic];
    offset = ops.traffic < plan_.uses.size() ? set.in_rank[pipeline_rank()].op_of[offset]
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
  const auto& beside = here().beside;
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
  first_of_layers_ = {};
  if (options_.grain == Grain::kernels) {
    about(Purpose::layer);
    std::size_t layer = begin_layer;
    for (std::size_t i = begin; i < end; ++i) {
      while (tape.layer_end[layer] <= i) ++layer;
      // Only forward tapes go from the first layer to the last.
      out_.note().layer = static_cast<std::uint32_t>(
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
  const auto [begin, end] = members();
  for (std::uint32_t r = begin; r < end; ++r) {
    after_.clear();
    add_waits(r);
    out_.add_marker(r, phase, after_);
  }
  here().waits.clear();
  beside_kernels_.is_done = true;
  went_on_to(ops);
}

void Emitter::run_step(const TapeStep& step, std::uint32_t beside) {
  const std::uint32_t name = out_.name_of(step.piece);
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
  compute(out_.name_of(stretch.step->phase), {.fixed = stretch.time}, stretch.step->phase);
  const auto is_zero = [](Time time) { return time == Time{}; };
  if (options_.is_ideal &&
      std::all_of(stretch.exchanged.begin(), stretch.exchanged.end(), is_zero) &&
      std::all_of(stretch.hidden.begin(), stretch.hidden.end(), is_zero))
    return;
  for (OpId op = first; op < next_op(); op = static_cast<OpId>(index(op) + 1))
    out_.add_merged({.op = op,
                     .exchanged = stretch.exchanged,
                     .hidden = stretch.hidden,
                     .kernels = options_.is_ideal ? std::vector<Time>{} : stretch.kernels});
}

void Emitter::compute(std::uint32_t name, const Compute& work, Phase phase) {
  const OpId first = next_op();
  const auto [begin, end] = members();
  for (std::uint32_t r = begin; r < end; ++r) {
    after_.clear();
    add_waits(r);
    out_.add_kernel(r, name, work, phase, after_);
  }
  here().waits.clear();
  went_on_to({first, FoldedRanks::none});
  if (beside_kernels_.left == 0)
    beside_kernels_.is_done = true;
  else if (--beside_kernels_.left == 0)
    here().waits = {beside_kernels_.exchange};
}

Emitter::Ops Emitter::kernel(const Piece& piece, Phase phase) {
  compute(out_.name_of(piece.name), std::get<Compute>(piece.work), phase);
  return last();
}

Emitter::Ops Emitter::exchange(std::uint32_t use, Lane lane, Phase phase) {
  return exchange_after(use, lane, phase, last());
}

Emitter::Ops Emitter::exchange_after(std::uint32_t use, Lane lane, Phase phase, const Ops& after) {
  const Ops ops = exchange_ops(use, lane, phase, out_.name_of_use(use), after);
  here().beside[at_lane(lane)] = ops.first;
  return ops;
}

Emitter::Ops Emitter::exchange_ops(std::uint32_t use, Lane lane, Phase phase, std::uint32_t name,
                                   const Ops& after) {
  const Ops ops{next_op(), use};
  out_.begin_communication(use, plan_.uses[use].size, false);
  const Ops before = std::exchange(here().on_lane[at_lane(lane)], ops);
  for (const std::uint32_t group : folded_.traffic[use].in_rank[pipeline_rank()].groups) {
    after_.clear();
    for (const std::uint32_t member : folded_.traffic[use].groups[group].representatives) {
      follow_on_lane(before, use, member);
      if (after.first != no_op) after_.push_back(op_for(after, member));
      if (lane == Lane::layer) add_waits(member);
    }
    out_.add_collective(use, group, lane, phase, name, after_);
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
  const Ops ops{next_op(), use};
  out_.begin_communication(use, plan_.uses[use].size, true);
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    const std::vector<std::uint32_t>& members = groups[group].representatives;
    after_.clear();
    for (std::uint32_t r = 0; r < folded_.representatives.size(); ++r) {
      at_rest(folded_.representatives[r].pipeline_rank);
      const bool is_member = std::find(members.begin(), members.end(), r) != members.end();
      if (!is_member && plan_.uses[use].family != Family::ends) continue;
      if (last().first != no_op) after_.push_back(op_for(last(), r));
      if (is_member) add_waits(r);
    }
    at_rest(folded_.representatives[members.front()].pipeline_rank);
    out_.add_collective(use, group, lane_of(use), phase, out_.name_of_use(use), after_);
  }
  return ops;
}

Emitter::Ops Emitter::send(std::uint32_t target, Lane lane, Bytes size) {
  const StepNetwork::Handover handover{pipeline_rank(), target, lane};
  const auto found = std::find(handovers_.begin(), handovers_.end(), handover);
  ASSERT(found != handovers_.end());
  const auto traffic = static_cast<std::uint32_t>(
      plan_.uses.size() + static_cast<std::size_t>(found - handovers_.begin()));
  const Ops ops{next_op(), traffic};
  out_.begin_communication(traffic, size, false);
  about(Purpose::hand_over);
  for (const std::uint32_t group : folded_.traffic[traffic].in_rank[pipeline_rank()].groups) {
    const std::uint32_t sender = folded_.traffic[traffic].groups[group].representatives.front();
    after_.clear();
    if (last().first != no_op) after_.push_back(op_for(last(), sender));
    add_waits(sender);
    out_.add_message(traffic, group, lane, size, after_);
  }
  return ops;
}

void Emitter::memory(const Ops& ops, bool at_end, MemoryKind kind, Bytes bytes) {
  if (bytes == Bytes{0} || ops.first == no_op) return;
  const auto [begin, end] = members();
  for (std::uint32_t r = begin; r < end; ++r)
    out_.add_memory(r, {op_for(ops, r), at_end, kind, bytes});
}

}  // namespace rehearse
