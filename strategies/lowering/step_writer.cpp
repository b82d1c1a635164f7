// Collectives of one folded group are made once; so are the connections of messages.
#include "strategies/lowering/step_writer.hpp"

#include <fmt/format.h>

#include <utility>

namespace rehearse {

namespace {

Stream stream_of(Lane lane) { return comm_lane(static_cast<std::size_t>(lane)); }

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

StepWriter::StepWriter(const StepPlan& plan, const FoldedRanks& folded, StepNetwork& network,
                       bool notes)
    : plan_{plan}, folded_{folded}, network_{network}, notes_{notes} {
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

void StepWriter::at(const Position& position) {
  here_ = position;
  note_.stage = position.stage;
}

std::uint32_t StepWriter::name_of(PieceId piece) {
  std::optional<std::uint32_t>& name = names_.pieces[static_cast<std::size_t>(piece)];
  if (!name) name = step_.program.name(plan_.pieces[piece].name);
  return *name;
}

void StepWriter::tag(Phase phase, bool communicates, Dimension dimension, Bytes bytes) {
  step_.tags.push_back({phase, communicates, dimension, here_.stage, here_.microbatch, bytes});
  if (notes_) step_.notes.push_back(note_);
}

void StepWriter::add_kernel(std::uint32_t representative, std::uint32_t name, const Compute& work,
                            Phase phase, After after) {
  step_.program.add_compute(rank_of(representative), Stream::compute, label(name), work, after);
  tag(phase, false, {}, {});
}

void StepWriter::add_marker(std::uint32_t representative, Phase phase, After after) {
  step_.program.add_marker(rank_of(representative), Stream::compute, label(name_of(phase)), after);
  tag(phase, false, {}, {});
}

void StepWriter::begin_communication(std::uint32_t traffic, Bytes size, bool is_joint) {
  step_.communications.push_back(
      {next_op(), traffic, here_.pipeline_rank, size, is_joint, here_.is_at_rest});
}

void StepWriter::add_collective(std::uint32_t use, std::uint32_t group, Lane lane, Phase phase,
                                std::uint32_t name, After after) {
  step_.program.add_collective(stream_of(lane), label(name), collective(use, group), after);
  tag(phase, true, dimension_of(plan_.uses[use].family), plan_.uses[use].size);
}

const Collective& StepWriter::collective(std::uint32_t use, std::uint32_t group) {
  std::optional<Collective>& work = collectives_[use][group];
  if (work) return *work;
  const CollectiveUse& wanted = plan_.uses[use];
  const FoldedRanks::Group& members = folded_.traffic[use].groups[group];
  const RememberedCollective& cost = network_.use(wanted).entries[members.entry].cost;
  work = {.kind = wanted.kind,
          .group = {},
          .data = {static_cast<Buffer>(2 * use), Bytes{0}, wanted.size},
          .result = {static_cast<Buffer>(2 * use + 1), Bytes{0}, wanted.size},
          .algorithm = std::string(cost.algorithm),
          .protocol = cost.protocol};
  for (const std::uint32_t member : members.representatives) work->group.push_back(rank_of(member));
  return *work;
}

// A buffer for each direction, after those of the collectives.
void StepWriter::add_message(std::uint32_t traffic, std::uint32_t group, Lane lane, Bytes size,
                             After after) {
  const bool is_backward = lane == Lane::backward;
  const auto buffer = static_cast<Buffer>(2 * plan_.uses.size() + (is_backward ? 2 : 0));
  const double payload = message_protocol(network_.topology()).payload;
  step_.program.add_transfer(
      stream_of(lane), label(names_.sends[is_backward]),
      {.connection = message_connection(traffic, group, size),
       .source_buffer = buffer,
       .target_buffer = static_cast<Buffer>(index(buffer) + 1),
       .size = size,
       .wire = Bytes{static_cast<std::int64_t>(static_cast<double>(size.count()) / payload)}},
      after);
  tag(Phase::hand_over, true, Dimension::pipeline, size);
}

ConnectionId StepWriter::message_connection(std::uint32_t traffic, std::uint32_t group,
                                            Bytes size) {
  const auto [slot, is_new] = messages_.try_emplace({traffic, group, size.count()});
  if (!is_new) return slot->second;
  const std::vector<std::uint32_t>& ends = folded_.traffic[traffic].groups[group].representatives;
  return slot->second =
             step_.program.connect({.source = rank_of(ends[0]),
                                    .target = rank_of(ends[1]),
                                    .protocol = message_protocol_number(network_.topology())});
}

void StepWriter::add_action(const Action& action, OpId begin) {
  step_.actions.resize(folded_.begin.size() - 1);
  step_.actions[here_.pipeline_rank].push_back({action, begin, next_op()});
}

void StepWriter::hold(std::uint32_t pipeline_rank, MemoryKind kind, Bytes bytes) {
  for (std::uint32_t r = folded_.begin[pipeline_rank]; r < folded_.begin[pipeline_rank + 1]; ++r)
    step_.roles[r].at_rest[static_cast<std::size_t>(kind)] += bytes;
}

}  // namespace rehearse
