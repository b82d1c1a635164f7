// `auto`: what the machine's library takes (nccl_choice.hpp); without one, every algorithm that
// applies, in every protocol of the machine, and the fastest of them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/engine/collective_bound.hpp"
#include "strategies/collectives/nccl_choice.hpp"
#include "strategies/collectives/rehearsal.hpp"

namespace rehearse {

struct Candidate {
  std::string_view algorithm;
  std::uint16_t protocol = 0;
  CollectiveResult result;
};

/// What was not tried, and why.
struct LeftOut {
  std::string_view algorithm;
  std::string reason;
};

class CollectiveChooser {
 public:
  /// `only` names the algorithms and protocols to try; empty: all that apply. Throws InputError
  /// when a named one does not, or none does.
  struct Wish {
    std::vector<std::string> algorithms, protocols;
    Detail detail = Detail::folded;
    std::size_t threads = 1;  // for candidates; more than one needs an engine that allows it
    int version = 0;          // of the library; 0: as the machine has it
  };
  CollectiveChooser(const CollectiveShape& shape, Routing& routing, const Wish& wish);

  /// All candidates at this size, the one taken first, then the fastest; each has passed the
  /// collective's lower bounds.
  std::vector<Candidate> at(Bytes size, Executor& engine);
  /// The first of them, without simulating those that cannot be it.
  Candidate best(Bytes size, Executor& engine);
  /// One of them alone, at another size.
  Candidate again(const Candidate& candidate, Bytes size, Executor& engine) const;

  std::span<const LeftOut> left_out() const { return left_out_; }
  const std::string& protocol_name(std::uint16_t protocol) const;
  BusiestLink busiest(const Candidate& candidate, Bytes size) const;
  /// The candidate's own; it must be one that was tried.
  CollectiveRehearsal& rehearsal(std::string_view algorithm) const;
  CollectiveBound bound(Bytes size) const { return bounds_.at(size); }

 private:
  /// Those that apply at this size, not yet simulated.
  std::vector<Candidate> candidates(Bytes size);
  /// Which of them the library takes; nothing where it is not asked.
  std::optional<std::size_t> taken(std::span<const Candidate> all, Bytes size) const;
  bool speaks(const Algorithm& how, std::uint16_t protocol) const;
  bool too_long(const CollectiveRehearsal& rehearsal, Bytes size) const;
  void leave_out(const CollectiveRehearsal& rehearsal, Bytes size);

  const Topology& topology_;
  CollectiveBounds bounds_;
  std::vector<std::uint16_t> protocols_;
  std::vector<std::unique_ptr<CollectiveRehearsal>> rehearsals_;
  std::vector<LeftOut> left_out_;
  CollectiveKind kind_;
  std::optional<NcclGraph> graph_;  // where a library chooses
  int version_;
  bool named_;
  std::size_t threads_;
};

}  // namespace rehearse
