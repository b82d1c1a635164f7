// The communication of a job: the families of groups in each dimension, the messages between
// pipeline neighbours, and which ranks are simulated. Everything here depends on where ranks are
// and which algorithms run, not on the model, so a sweep over strategies finds most of it
// remembered.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategies/fold/folded_ranks.hpp"
#include "strategies/plan/step_plan.hpp"

namespace rehearse {

/// A message as its sender sees it alone.
struct MessagePath {
  Time latency;
  BytesPerSecond rate;
};

/// NCCL sends messages by its protocol for large data: "simple", or the machine's only one.
std::uint16_t message_protocol_number(const Topology& topology);
Protocol message_protocol(const Topology& topology);

/// The way of a collective as one flow, at the ranks it ends at.
Connection connection_of(const RememberedCollective& collective, std::vector<Rank> ranks);
/// When its bytes move; crosses no link yet. Without bytes all its time passes before them.
FoldedPath path_of(const RememberedCollective& collective);

class StepNetwork {
 public:
  /// The pool must outlive it.
  StepNetwork(Placement placement, CollectiveChoice choice, FamilyPool& pool);

  /// A pipeline rank hands over to another.
  struct Handover {
    std::uint32_t source = 0, target = 0;
    Lane lane{};
    friend auto operator<=>(const Handover&, const Handover&) = default;
  };

  const GroupFamily::Use& use(const CollectiveUse& use);
  std::span<const GroupFamily::Group> groups(const CollectiveUse& use) {
    return family(use).groups();
  }
  /// Those of all ranks of the source.
  const std::vector<Traffic::Message>& messages(const Handover& handover);

  /// Which ranks are simulated in a step that uses these: traffic [0, uses) are the collectives,
  /// the rest hand-overs.
  const FoldedRanks& fold(std::span<const CollectiveUse> uses, std::span<const Handover> handovers,
                          bool fold, std::span<const std::uint64_t> own = {});
  static Lane lane_of(const CollectiveUse& use);
  MessagePath path(const Handover& handover, std::uint32_t message);
  /// A collective that nothing else meets, begun together with kernels of this time at a rank.
  struct Beside {
    Time time;  // of both, with what the one takes from the other
    Time kernels;
  };
  const Beside& beside(const RememberedCollective& collective, Time kernels);
  const Placement& placement() const { return placement_; }
  const Topology& topology() const { return routing_.topology(); }

 private:
  GroupFamily& family(const CollectiveUse& use);

  Placement placement_;
  CollectiveChoice choice_;
  FamilyPool& pool_;
  Routing& routing_;
  std::vector<std::uint32_t> pipeline_rank_;  // by rank
  using FamilyKey = std::tuple<Family, std::uint32_t, std::uint32_t>;
  std::map<FamilyKey, GroupFamily*> families_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Traffic::Message>> messages_;
  std::map<std::pair<const RememberedCollective*, std::int64_t>, Beside> beside_;
  using FoldKey =
      std::tuple<std::vector<const void*>, std::vector<Handover>, bool, std::vector<std::uint64_t>>;
  std::map<FoldKey, FoldedRanks> folded_;
};

/// Every pair of pipeline ranks that neighbouring stages lie on, in both directions.
std::vector<StepNetwork::Handover> handovers_of(const Schedule& schedule);

}  // namespace rehearse
