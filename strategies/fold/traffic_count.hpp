// How many bytes a step puts on each link of the machine. A folded program crosses only links that
// may be short, and one of those that are alike; here every group and every message counts on all
// of its own.
#pragma once

#include <map>
#include <vector>

#include "strategies/fold/step_network.hpp"

namespace rehearse {

class TrafficCount {
 public:
  /// A collective on every group of the use that lies in the pipeline rank.
  void exchange(std::uint32_t use, std::uint32_t pipeline_rank) {
    ++exchanges_[{use, pipeline_rank}];
  }
  /// On every group of the use, whatever pipeline ranks they reach over.
  void exchange_of_all(std::uint32_t use) { ++exchanges_of_all_[use]; }
  /// From every rank of the one pipeline rank to its partner in the other.
  void message(const StepNetwork::Handover& handover, Bytes size) { messages_[handover] += size; }

  /// By LinkId, with what protocols add.
  std::vector<Bytes> on_links(const StepPlan& plan, StepNetwork& network) const;

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>
      exchanges_;  // use, pipeline rank
  std::map<std::uint32_t, std::uint64_t> exchanges_of_all_;
  std::map<StepNetwork::Handover, Bytes> messages_;  // of each rank
};

}  // namespace rehearse
