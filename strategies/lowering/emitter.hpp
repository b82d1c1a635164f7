// Writes the ops of a step. The representatives of one pipeline rank go in step with each other:
// each call adds one op for every one of them, and the ops of a call follow each other in the
// Program.
//
// In `blocks` the kernels of a stretch become one op that takes as long as all of them. So do the
// collectives among them that nothing can hold up, unless a collective beside the kernels slows
// those and only those: a sum instead of a walk, and the same times.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strategies/fold/step_network.hpp"
#include "strategies/fold/traffic_count.hpp"
#include "strategies/lowering/step_program.hpp"
#include "strategies/plan/imperfections.hpp"

namespace rehearse {

class Emitter {
 public:
  Emitter(const StepPlan& plan, StepNetwork& network, const LowerOptions& options);

  /// The ops of one call: those of the representatives or groups of a pipeline rank, from `first`
  /// on.
  struct Ops {
    OpId first = no_op;
    std::uint32_t traffic =
        FoldedRanks::none;  // of exchanges and messages; none: one for each representative
    friend bool operator==(const Ops&, const Ops&) = default;
  };

  /// Where the lowering stands from now on.
  void at(std::uint32_t pipeline_rank, std::uint32_t stage, std::uint32_t microbatch);
  std::uint32_t pipeline_rank() const { return place_; }
  std::uint32_t stage() const { return stage_; }
  std::uint32_t microbatch() const { return microbatch_; }

  /// Before its first action, or after its last.
  void at_rest(std::uint32_t pipeline_rank);

  /// What the strategy's next ops are for, and where in its stage's gradients they begin; until the
  /// next layers, or until it says otherwise.
  void about(Purpose purpose, Bytes begin = Bytes{}) {
    note_.purpose = purpose;
    note_.begin = begin;
  }
  /// At rest: the next ops are about this one of the pipeline rank's stages.
  void of_stage(std::uint32_t stage) { note_.stage = stage; }
  /// One more step of those that are simulated in a row begins.
  void next_step() { ++note_.step; }

  /// The next kernel waits for these. An exchange of this very pipeline rank, or a message to it.
  void wait_for(const Ops& ops);
  /// The layers [begin, end) of a tape, in its order.
  void run(const Tape& tape, std::size_t begin_layer, std::size_t end_layer);
  /// One kernel.
  Ops kernel(const Piece& piece, Phase phase);
  /// A collective beside the kernels: it begins when all so far is done, or `after` only.
  Ops exchange(std::uint32_t use, Lane lane, Phase phase);
  Ops exchange_after(std::uint32_t use, Lane lane, Phase phase, const Ops& after);
  /// One on every group of the use at the end of a step, whatever pipeline ranks they reach over.
  /// It begins when all that its members do or wait for is done; between the ends of a pipeline,
  /// when everybody's layers are.
  Ops exchange_of_all(std::uint32_t use, Phase phase);
  Lane lane_of(std::uint32_t use) const { return network_.lane_of(plan_.uses[use]); }
  /// To another pipeline rank, when all so far is done. Its `wait_for` is for the receiver.
  Ops send(std::uint32_t target, Lane lane, Bytes size);

  /// What ends last of the layers and kernels so far; no_op before the first. Where a layer ends
  /// with an exchange, that is it: a block that holds both ends with it, too.
  Ops last() const { return last_[place_]; }
  /// What began first since `at`, and of the layers that ran last.
  Ops first() const { return first_; }
  Ops first_of_layers() const { return first_of_layers_; }
  /// Bytes that come or go on the pipeline rank's devices when ops begin or end.
  void memory(const Ops& ops, bool at_end, MemoryKind kind, Bytes bytes);
  /// Bytes held all the time.
  void hold(std::uint32_t pipeline_rank, MemoryKind kind, Bytes bytes);

  const StepPlan& plan() const { return plan_; }
  const FoldedRanks& cast() const { return folded_; }
  OpId next_op() const { return static_cast<OpId>(step_.program.size()); }
  /// The ops since `begin` were an action of the pipeline rank.
  void note_action(const Action& action, OpId begin);
  StepProgram finish();

 private:
  struct Block {
    const TapeStep* step = nullptr;  // one that stays alone, or the first of the merged
    bool merged = false;
    bool is_whole = false;      // beside an exchange: what follows waits for that
    Time time;                  // of merged kernels and collectives
    std::vector<Time> kernels;  // of them, each alone
    std::array<Time, dimension_count> exchanged{}, hidden{};  // as in MergedOp
  };

  std::vector<StepNetwork::Handover> handovers_of() const;
  bool merges(std::uint32_t use) const;
  const std::vector<Block>& blocks(const Tape& tape, std::size_t begin, std::size_t end,
                                   bool with_exchanges);
  void note_beside_kernels(std::uint32_t use);
  void add_exchange_to(Block& block, const TapeStep& step, Time kernels);
  void run_step(const TapeStep& step, std::uint32_t beside);
  void join(Phase phase);
  void run_merged(const Block& block);
  void compute(std::uint32_t name, const Compute& work, Phase phase);
  double network_factor(Rank first) const;
  Ops exchange_ops(std::uint32_t use, Lane lane, Phase phase, std::uint32_t name, const Ops& after);
  void add_exchange(std::uint32_t use, const FoldedRanks::Group& group, std::uint32_t number,
                    Lane lane, Label label);
  void add_message(std::uint32_t traffic, std::uint32_t number, Lane lane, Label label, Bytes size);
  ConnectionId exchange_connection(std::uint32_t use, std::uint32_t group);
  ConnectionId message_connection(std::uint32_t traffic, std::uint32_t group, Bytes size);
  void follow_on_lane(const Ops& before, std::uint32_t use, std::uint32_t representative);
  void tag(Phase phase, bool communicates, Dimension dimension, Bytes bytes);
  void began(const Ops& ops);
  void went_on_to(const Ops& ops);
  std::uint32_t name_of(PieceId piece);
  bool has_exchange_beside() const;
  bool merges_exchanges() const;
  void add_waits(std::uint32_t representative);
  OpId op_for(const Ops& ops, std::uint32_t representative) const;
  std::uint32_t representatives() const {
    return folded_.begin[place_ + 1] - folded_.begin[place_];
  }

  const StepPlan& plan_;
  StepNetwork& network_;
  LowerOptions options_;
  Imperfections imperfections_;
  std::vector<std::uint64_t> exchanges_;  // so far, by pipeline rank
  std::vector<StepNetwork::Handover> handovers_;
  const FoldedRanks& folded_;
  StepProgram step_;
  OpNote note_{.step = UINT32_MAX};  // before the first
  TrafficCount count_;
  std::uint32_t place_ = 0, stage_ = 0, microbatch_ = 0;
  bool is_at_rest_ = true;
  Ops first_, first_of_layers_;
  struct {  // an exchange of a layer that some kernels do not wait for
    Ops exchange;
    std::uint32_t left = 0;  // of those kernels
    bool is_done = true;     // something has waited for it since
  } beside_kernels_;
  std::vector<Ops> last_;                // by pipeline rank
  std::vector<std::vector<Ops>> waits_;  // of the next kernel, by pipeline rank
  // Exchanges beside the kernels that no kernel has waited for yet: the last of each lane.
  std::vector<std::array<OpId, lane_count>> beside_;    // by pipeline rank
  std::vector<std::array<Ops, lane_count>> on_lane_;    // the last exchange of each
  std::vector<const GroupFamily::Use*> costs_;          // of the uses
  std::vector<std::vector<ConnectionId>> connections_;  // by use, by group
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, ConnectionId> messages_;
  std::map<std::tuple<const Tape*, std::size_t, std::size_t, bool>, std::vector<Block>> blocks_;
  std::vector<std::uint32_t> phase_names_, kind_names_;  // interned
  std::array<std::uint32_t, 2> send_names_{};
  std::vector<std::optional<std::uint32_t>> names_;  // of the plan's pieces
  std::vector<OpId> after_;                          // scratch
};

}  // namespace rehearse
