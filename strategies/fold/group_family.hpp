// The groups of one parallel dimension (all tensor-parallel groups, all data-parallel groups), and
// what a collective costs on them: simulated once on one of those that are alike, then remembered.
//
// Two groups are alike for an algorithm when its pattern, moved from the one to the other member by
// member, crosses links of the same rates and latencies in the same arrangement. Then both take
// equally long alone, and differ only in which links they load.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "strategies/collectives/choose.hpp"

namespace rehearse {

/// How a collective runs alone on a group: its bytes move in equal bursts, with gaps between them
/// and a lead before the first.
struct RememberedCollective {
  Time time;
  Time lead, gap;
  std::uint32_t bursts = 1;
  Bytes wire;  // what it puts on the link that carries most, in units of LoadedLink::whole
  std::string_view algorithm;
  std::uint16_t protocol = 0;
  bool is_pipelined = false;  // its transfers are posted: they flow on evenly

  /// Of one burst.
  Time moving() const {
    const std::int64_t still = lead.ps() + (bursts - 1) * gap.ps();
    return Time::picoseconds((time.ps() - still) / bursts);
  }
};

/// A link of a flow, and its bytes as a share of what the flow's busiest link carries. Shares are
/// weights of the engine's flows, which are whole numbers: so every flow counts its bytes in units
/// of 256, and a share of 1 weighs 256.
struct LoadedLink {
  static constexpr std::uint32_t whole = 256;
  LinkId link{};
  std::uint32_t share = 0;
};

class GroupFamily {
 public:
  using Group = std::vector<Rank>;

  /// Groups that are alike under one algorithm, and what each of them loads.
  struct Alike {
    std::vector<std::uint32_t> groups;           // ascending
    std::vector<std::vector<LoadedLink>> loads;  // by place in `groups`
    /// On its busiest link: when others come there, each of these has a share of its own.
    std::uint32_t streams = 1;
  };
  /// A collective on every group of the family; alike groups share an entry.
  struct Use {
    struct Entry {
      RememberedCollective cost;
      const Alike* alike = nullptr;
    };
    std::vector<Entry> entries;
  };

  /// The routing and the engine must outlive it; groups are equally long.
  GroupFamily(std::vector<Group> groups, Routing& routing, Executor& engine);

  std::span<const Group> groups() const { return groups_; }
  std::size_t group_size() const { return groups_.empty() ? 1 : groups_.front().size(); }

  /// `algorithm` and `protocol` may be "auto". Valid as long as the family.
  const Use& use(CollectiveKind kind, Bytes size, const std::string& algorithm,
                 const std::string& protocol);

 private:
  struct Wanted {
    CollectiveKind kind{};
    std::string algorithm, protocol;
    // Spelled out: strings have no <=> in the lab's libc++ 14.
    friend bool operator<(const Wanted& a, const Wanted& b) {
      return std::tie(a.kind, a.algorithm, a.protocol) < std::tie(b.kind, b.algorithm, b.protocol);
    }
  };
  using GroupNumber = std::uint32_t;
  CollectiveChooser& chooser(const Wanted& wanted, GroupNumber group);
  Candidate best_at(const Wanted& wanted, GroupNumber group, Bytes size);
  const Alike& alike(const Wanted& wanted, GroupNumber first, std::string_view algorithm);
  Alike find_alike(GroupNumber first, const CollectiveRehearsal& rehearsal) const;

  std::vector<Group> groups_;
  Routing& routing_;
  Executor& engine_;
  std::map<std::pair<Wanted, GroupNumber>, std::unique_ptr<CollectiveChooser>> choosers_;
  std::map<std::tuple<Wanted, GroupNumber, std::uint64_t>, Candidate> choices_;  // by power of two
  std::map<std::tuple<CollectiveKind, GroupNumber, std::string_view>, Alike> alike_;
  std::map<std::pair<Wanted, std::int64_t>, Use> uses_;
};

/// Families by their groups: the tensor-parallel groups of a machine are the same ones whatever its
/// pipelines look like, so placements share what is known of them.
class FamilyPool {
 public:
  /// Both must outlive it.
  FamilyPool(Routing& routing, Executor& engine) : routing_{routing}, engine_{engine} {}
  GroupFamily& of(const std::vector<GroupFamily::Group>& groups);
  Routing& routing() const { return routing_; }
  Executor& engine() const { return engine_; }

 private:
  Routing& routing_;
  Executor& engine_;
  std::map<std::vector<GroupFamily::Group>, GroupFamily> families_;
};

}  // namespace rehearse
