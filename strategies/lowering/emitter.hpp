// Writes the ops of a step: kernels, whole collectives, messages. The representatives of one
// pipeline rank go in step with each other: each call adds one op for every one of them, and the
// ops of a call follow each other in the Program.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "strategies/fold/step_network.hpp"
#include "strategies/lowering/merged_tapes.hpp"
#include "strategies/lowering/step_writer.hpp"

namespace rehearse {

class Emitter {
 public:
  struct Options {
    Grain grain = Grain::kernels;
    bool is_ideal = true;  // kernels take the times that were planned
    bool notes = false;
  };
  /// All must outlive it.
  Emitter(const StepPlan& plan, const FoldedRanks& folded, StepNetwork& network,
          const Options& options);

  /// The ops of one call: those of the representatives or groups of a pipeline rank, from `first`
  /// on.
  struct Ops {
    OpId first = no_op;
    // Of exchanges and messages; none: one for each representative.
    std::uint32_t traffic = FoldedRanks::none;
    friend bool operator==(const Ops&, const Ops&) = default;
  };

  /// Where the lowering stands from now on.
  void at(std::uint32_t pipeline_rank, std::uint32_t stage, std::uint32_t microbatch);
  std::uint32_t pipeline_rank() const { return out_.here().pipeline_rank; }
  std::uint32_t stage() const { return out_.here().stage; }

  /// Before its first action, or after its last.
  void at_rest(std::uint32_t pipeline_rank);

  /// What the strategy's next ops are for, and where in its stage's gradients they begin; until the
  /// next layers, or until it says otherwise.
  void about(Purpose purpose, Bytes begin = Bytes{}) {
    out_.note().purpose = purpose;
    out_.note().begin = begin;
  }
  /// At rest: the next ops are about this one of the pipeline rank's stages.
  void of_stage(std::uint32_t stage) { out_.note().stage = stage; }
  /// One more step of those that are simulated in a row begins.
  void next_step() { ++out_.note().step; }

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
  Lane lane_of(std::uint32_t use) const { return StepNetwork::lane_of(plan_.uses[use]); }
  /// To another pipeline rank, when all so far is done. Its `wait_for` is for the receiver.
  Ops send(std::uint32_t target, Lane lane, Bytes size);

  /// What ends last of the layers and kernels so far; no_op before the first. Where a layer ends
  /// with an exchange, that is it: a block that holds both ends with it, too.
  Ops last() const { return here().last; }
  /// What began first since `at`, and of the layers that ran last.
  Ops first() const { return first_; }
  Ops first_of_layers() const { return first_of_layers_; }
  /// Bytes that come or go on the pipeline rank's devices when ops begin or end.
  void memory(const Ops& ops, bool at_end, MemoryKind kind, Bytes bytes);
  /// Bytes held all the time.
  void hold(std::uint32_t pipeline_rank, MemoryKind kind, Bytes bytes) {
    out_.hold(pipeline_rank, kind, bytes);
  }

  const StepPlan& plan() const { return plan_; }
  OpId next_op() const { return out_.next_op(); }
  /// The ops since `begin` were an action of the pipeline rank.
  void note_action(const Action& action, OpId begin) { out_.add_action(action, begin); }
  StepProgram finish() { return out_.finish(); }

 private:
  /// What a pipeline rank has done so far.
  struct Progress {
    Ops last;
    std::vector<Ops> waits;  // of the next kernel
    // Exchanges beside the kernels that no kernel has waited for yet: the last of each lane.
    std::array<OpId, lane_count> beside{};
    std::array<Ops, lane_count> on_lane{};  // the last exchange of each
  };
  struct BesideKernels {  // an exchange of a layer that some kernels do not wait for
    Ops exchange;
    std::uint32_t left = 0;  // of those kernels
    bool is_done = true;     // something has waited for it since
  };

  const Progress& here() const { return ranks_[pipeline_rank()]; }
  Progress& here() { return ranks_[pipeline_rank()]; }
  /// Its representatives: [first, second).
  std::pair<std::uint32_t, std::uint32_t> members() const {
    return {folded_.begin[pipeline_rank()], folded_.begin[pipeline_rank() + 1]};
  }
  bool merges_exchanges() const;
  void run_step(const TapeStep& step, std::uint32_t beside);
  void run_merged(const Stretch& stretch);
  void join(Phase phase);
  void compute(std::uint32_t name, const Compute& work, Phase phase);
  Ops exchange_ops(std::uint32_t use, Lane lane, Phase phase, std::uint32_t name, const Ops& after);
  void follow_on_lane(const Ops& before, std::uint32_t use, std::uint32_t representative);
  void began(const Ops& ops);
  void went_on_to(const Ops& ops);
  void add_waits(std::uint32_t representative);
  OpId op_for(const Ops& ops, std::uint32_t representative) const;

  const StepPlan& plan_;
  const FoldedRanks& folded_;
  Options options_;
  MergedTapes tapes_;
  StepWriter out_;
  Ops first_, first_of_layers_;
  BesideKernels beside_kernels_;
  std::vector<Progress> ranks_;  // by pipeline rank
  std::vector<StepNetwork::Handover> handovers_;
  std::vector<OpId> after_;  // scratch
};

}  // namespace rehearse
