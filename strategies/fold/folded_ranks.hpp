// Which ranks are simulated: one representative of each equivalence class of ranks, and one group
// of representatives for each class of groups.
//
//   rank            0 1 2 3 4 5 6 7 │ 8 … 15 │ …        8-way tensor parallel, 16 stages, 8 copies:
//   representative  ╰──── 0 ──────╯ │ ╰─ 0 ─╯│ … 1 …    1,024 ranks, 64 classes with NCCL, 32
//   without
//
// Ranks are equivalent in the same place of the pipeline, in equivalent groups, over links that
// carry the same. As for a single collective (collectives/fold.hpp) colours of ranks, flows and
// links are refined until they are stable; then everything of one colour happens at the same time,
// and the folded answer equals the unfolded one exactly. A link that only one flow at a time can
// use cannot become a bottleneck, and has no colour.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program/program.hpp"
#include "strategies/fold/group_family.hpp"

namespace rehearse {

/// One kind of traffic of a step: a collective on every group of a family, or a message from each
/// rank of a pipeline place to its partner in another. Flows of one lane of a rank take turns.
struct Traffic {
  struct Message {
    Rank source{}, target{};
    std::vector<LinkId> links;
  };
  std::uint32_t lane = 0;
  bool is_light = false;  // too few bytes for any link to feel
  bool is_last = false;   // begins when the layers of all ranks are done, and meets none of them
  std::span<const GroupFamily::Group> groups;      // of collectives
  std::vector<const GroupFamily::Alike*> entries;  // as in GroupFamily::Use
  std::vector<Message> messages;                   // or messages
};

struct FoldedRanks {
  struct Representative {
    Rank rank{};
    std::uint32_t pipeline_rank = 0;
    std::uint32_t ranks = 1;  // of its class
  };
  /// Representatives that meet in a collective, or sender and receiver of a message.
  struct Group {
    std::vector<std::uint32_t> representatives;
    std::uint32_t entry = 0;       // of the collective's use; or the message's number
    std::uint32_t stands_for = 1;  // groups or messages
    std::vector<FoldedPath::Crossing> crossings;  // possible bottlenecks; weights add up shares
    /// Whom it meets on those links: lanes of its own pipeline rank (a bit each), or anybody else.
    std::uint32_t lanes_met = 0;
    bool meets_others = false;
  };
  /// Those of one pipeline rank: each gets an op, one after the other, when the rank communicates.
  struct GroupsInRank {
    std::vector<std::uint32_t> groups;  // their numbers, in the order of the ops
    /// By representative of the pipeline rank: which of those ops is its own; none if it has none.
    std::vector<std::uint32_t> op_of;
  };
  /// By kind of traffic.
  struct GroupSet {
    std::vector<Group> groups;
    std::vector<std::uint32_t> of_representative;  // its group (as sender); none if it has none
    std::vector<GroupsInRank> in_rank;             // by pipeline rank
    std::vector<std::uint32_t> arrival;  // of messages, by representative: which op reaches it
  };
  static constexpr std::uint32_t none = UINT32_MAX;

  std::vector<Representative> representatives;  // by pipeline rank
  std::vector<std::uint32_t> begin;  // representatives of pipeline rank p: [begin[p], begin[p + 1])
  std::vector<GroupSet> traffic;
  bool folded = false;
};

/// `pipeline_rank` by rank. Without `fold` every rank is simulated. Ranks of different `own`
/// colours are not equivalent to begin with (Imperfections::colours()); without any all may be.
FoldedRanks fold_ranks(std::span<const std::uint32_t> pipeline_rank,
                       std::span<const Traffic> traffic, const Topology& topology, bool fold,
                       std::span<const std::uint64_t> own = {});

}  // namespace rehearse
