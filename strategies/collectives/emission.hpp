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
  /// All connections speak the pattern's protocol number `protocol`. `entry` holds, by rank, the
  /// ops after which the rank's data are there; empty: at once.
  Emission(Program& program, const Pattern& pattern, const Fold& fold, std::uint16_t protocol = 0,
           std::span<const std::vector<OpId>> entry = {});

  bool keeps(HopId hop) const { return index(fold_.stand_in[index(hop)]) == index(hop); }
  /// The place of the hop, or of the one that stands for it, among the kept ones.
  std::uint32_t place(HopId hop) const { return place_[index(fold_.stand_in[index(hop)])]; }
  std::size_t kept() const { return fold_.kept; }
  std::span<const HopId> follows(HopId hop) const { return pattern_[hop].follows; }

  struct Payload {
    Slice source, target;
    Combine combine = Combine::overwrite;
    Bytes longest;  // of all chunks of this step: shorter ones are padded, see README.md
  };
  OpId send(HopId hop, const Payload& payload, std::span<const OpId> after, std::uint32_t name,
            std::uint32_t number);
  std::uint32_t name(std::string_view text) { return program_.name(text); }

  /// The ops after which a rank's data are what the next stage expects.
  std::span<const OpId> ready(Rank rank) const { return ready_[fold_.role[index(rank)]]; }
  /// Inputs of a hop's first transfer in a stage: both ends' data must be there.
  std::vector<OpId> ready_for(HopId hop) const;
  /// Ends a stage in which the last transfers were `last`, by place; no_op where a hop had none.
  /// Ranks that took part are ready after the transfers that touched them.
  void end_stage(std::span<const OpId> last);

  Program& program() { return program_; }

 private:
  void touch(std::vector<std::vector<OpId>>& ready, Rank rank, OpId op) const;

  Program& program_;
  const Pattern& pattern_;
  const Fold& fold_;
  std::vector<std::uint32_t> place_;       // by hop, for kept ones
  std::vector<HopId> kept_hops_;           // by place
  std::vector<ConnectionId> connections_;  // by place
  std::vector<std::vector<OpId>> ready_;   // by role
};

}  // namespace rehearse
