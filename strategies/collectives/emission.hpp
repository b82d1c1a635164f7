// Writes a collective's transfers into a Program, for the kept hops of a fold only. Algorithms walk
// their pattern as if every rank were there; a hop that another stands for is passed over, and an
// edge to its transfer becomes an edge to the stand-in's.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "strategies/collectives/fold.hpp"

namespace rehearse {

class Emission {
 public:
  struct Where {
    std::uint16_t protocol = 0;  // of the pattern's, spoken by all connections
    std::size_t lane = 0;        // the program's communication lane that is the pattern's first
    std::span<const std::vector<OpId>> entry = {};  // by rank: after what its data are there
    bool by_kernels = false;                        // there is compute beside it to be slowed
  };
  Emission(Program& program, const Pattern& pattern, const Fold& fold, const Where& where);

  bool keeps(HopId hop) const { return fold_.keeps(hop); }
  std::uint32_t place(HopId hop) const { return fold_.place(hop); }
  std::span<const HopId> kept() const { return fold_.kept(); }
  std::span<const HopId> follows(HopId hop) const { return pattern_[hop].follows; }

  struct Payload {
    Slice source, target;
    Combine combine = Combine::overwrite;
    Bytes longest;  // of all chunks of this step: shorter ones are padded (DECISIONS.md)
  };
  OpId send(HopId hop, const Payload& payload, std::span<const OpId> after, std::uint32_t name,
            std::uint32_t number);
  std::uint32_t name(std::string_view text) { return program_.name(text); }

  /// Inputs of a hop's first transfer in a stage: what the latest stage that touched its ends did
  /// there must be done.
  std::vector<OpId> ready_for(HopId hop) const;
  /// Ends a stage in which the last transfers were `last`, by place; no_op where a hop had none.
  void end_stage(std::span<const OpId> last);
  /// Begins another piece of the data, whose stages wait for none of the pieces before.
  void begin_piece();
  /// Ops emitted round by round, each round alike.
  struct Rounds {
    OpId first = no_op;
    std::size_t width = 0, count = 0;  // ops a round, rounds
  };
  /// Says that everything from op `first` on was `count` rounds.
  void note_rounds(OpId first, std::size_t count);
  const Rounds& rounds() const { return rounds_; }
  OpId next_op() const { return static_cast<OpId>(program_.size()); }

  /// The ops after which a rank's part of the collective is done.
  std::vector<OpId> done(Rank rank) const;

 private:
  void add_ready(Rank rank, std::vector<OpId>& ops) const;

  Program& program_;
  const Pattern& pattern_;
  const Fold& fold_;
  Where where_;
  std::vector<ConnectionId> connections_;  // by place
  struct Latest {
    OpId op = no_op;
    std::uint32_t stage = 0;  // counted from 1 as they end
  };
  std::vector<Latest> latest_;  // by place
  std::uint32_t stages_ = 0;
  Rounds rounds_;
};

}  // namespace rehearse
