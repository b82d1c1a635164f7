// The ops of a step one by one, each with its label, its tag and its note; and what else a
// StepProgram says: roles, memory, actions. When an op begins is the Emitter's business.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "strategies/fold/step_network.hpp"
#include "strategies/lowering/step_program.hpp"

namespace rehearse {

class StepWriter {
 public:
  /// All must outlive it.
  StepWriter(const StepPlan& plan, const FoldedRanks& folded, StepNetwork& network, bool notes);

  /// What the next ops belong to.
  struct Position {
    std::uint32_t pipeline_rank = 0, stage = 0, microbatch = 0;
    bool is_at_rest = true;  // before its first action, or after its last
  };
  const Position& here() const { return here_; }
  void at(const Position& position);
  OpNote& note() { return note_; }

  OpId next_op() const { return static_cast<OpId>(step_.program.size()); }
  std::uint32_t name_of(PieceId piece);
  std::uint32_t name_of(std::string_view text) { return step_.program.name(text); }
  std::uint32_t name_of(Phase phase) const {
    return names_.phases[static_cast<std::size_t>(phase)];
  }
  std::uint32_t name_of_use(std::uint32_t use) const { return names_.uses[use]; }

  using After = std::span<const OpId>;
  void add_kernel(std::uint32_t representative, std::uint32_t name, const Compute& work,
                  Phase phase, After after);
  void add_marker(std::uint32_t representative, Phase phase, After after);
  /// A whole collective of a folded group.
  void add_collective(std::uint32_t use, std::uint32_t group, Lane lane, Phase phase,
                      std::uint32_t name, After after);
  void add_message(std::uint32_t traffic, std::uint32_t group, Lane lane, Bytes size, After after);
  /// The next ops are those of one call that communicates.
  void begin_communication(std::uint32_t traffic, Bytes size, bool is_joint);

  /// An op stands for a stretch of kernels and exchanges.
  void add_merged(MergedOp merged) { step_.merged.push_back(std::move(merged)); }
  void add_memory(std::uint32_t representative, const MemoryChange& change) {
    step_.roles[representative].changes.push_back(change);
  }
  void hold(std::uint32_t pipeline_rank, MemoryKind kind, Bytes bytes);
  /// The ops since `begin` were an action of this pipeline rank.
  void add_action(const Action& action, OpId begin);
  StepProgram finish() { return std::move(step_); }

 private:
  struct Names {                                       // interned
    std::vector<std::optional<std::uint32_t>> pieces;  // of the plan
    std::vector<std::uint32_t> phases, uses;
    std::array<std::uint32_t, 2> sends{};
  };
  Rank rank_of(std::uint32_t representative) const {
    return folded_.representatives[representative].rank;
  }
  Label label(std::uint32_t name) const { return {name, here_.microbatch}; }
  void tag(Phase phase, bool communicates, Dimension dimension, Bytes bytes);
  const Collective& collective(std::uint32_t use, std::uint32_t group);
  ConnectionId message_connection(std::uint32_t traffic, std::uint32_t group, Bytes size);

  const StepPlan& plan_;
  const FoldedRanks& folded_;
  StepNetwork& network_;
  bool notes_;
  StepProgram step_;
  Position here_;
  OpNote note_{.step = UINT32_MAX};  // before the first
  Names names_;
  std::vector<std::vector<std::optional<Collective>>> collectives_;  // by use, by group
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, ConnectionId> messages_;
};

}  // namespace rehearse
