// How long a collective takes: its pattern laid on the machine once, then simulated for any size.
// Ranks that are alike are folded, rounds that are alike are simulated until they repeat exactly,
// and sizes that move the same chunks are remembered. `Detail::transfers` does none of that.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/executor.hpp"
#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

enum class Detail : std::uint8_t { folded, transfers };

struct CollectiveResult {
  Time time;
  std::uint64_t transfers = 0;  // simulated now; none when the answer was remembered
  std::uint64_t events = 0;
};

/// The link that is full for the greatest part of a collective's time, and that part.
struct BusiestLink {
  LinkId link = no_link;
  double load = 0;
};

class CollectiveRehearsal {
 public:
  /// The routing must outlive it. Throws InputError when the algorithm refuses the shape.
  CollectiveRehearsal(const Algorithm& algorithm, CollectiveShape shape, Routing& routing,
                      Detail detail);

  /// Simulates it for `size` bytes (of the whole data, as nccl-tests counts) in the topology's
  /// protocol number `protocol` on the engine, which must be of the routing's topology. A folded
  /// rehearsal may be run from several threads.
  CollectiveResult run(Bytes size, Executor& engine, std::uint16_t protocol = 0);

  /// The whole program for a size, for traces, other executors and explanations; folded unless
  /// the detail is `transfers`.
  Program program(Bytes size, std::uint16_t protocol = 0) const;

  /// Writes all of it into a program that may hold other ops; for expand_collectives().
  Emission emit_into(Program& program, const CollectiveBuffers& buffers,
                     const Emission::Where& where) const;

  /// What limits it: over all ranks, folded or not, when it takes `time`.
  BusiestLink busiest(Bytes size, std::uint16_t protocol, Time time) const;

  /// Bytes that each hop of the pattern, folded or not, puts on its links in all.
  std::vector<double> carried(Bytes size, std::uint16_t protocol) const;
  const Pattern& pattern() const { return plan_.pattern; }
  /// Of the pattern's hops.
  const Paths& paths() const { return *paths_; }

  /// What passes on every rank before the first transfer, in every detail.
  Time launch(std::uint16_t protocol) const;

  /// It cannot take less than the longest chain of its transfers, none in another's way; nor, where
  /// that is exact, more.
  struct Least {
    Time time;
    bool is_exact = false;
    std::uint64_t transfers = 0;  // that were looked at
  };
  Least least(Bytes size, std::uint16_t protocol) const;

  /// No more transfers than this are simulated for a size.
  std::uint64_t most_transfers(Bytes size) const;

  const Algorithm& algorithm() const { return algorithm_; }
  /// How many hops are simulated, each for all that are like it.
  std::size_t roles() const { return fold_->kept().size(); }
  /// The longest latency and the lowest rate alone of any hop: alpha and beta of the closed forms.
  Time alpha() const { return alpha_; }
  BytesPerSecond beta() const { return beta_; }

 private:
  /// Whether no link is ever short.
  bool finds_room() const;
  std::size_t pieces(Bytes size, std::uint16_t protocol) const;
  Emission::Rounds emit(Program& program, Bytes size, std::uint16_t protocol,
                        std::size_t rounds) const;
  CollectiveResult run_rounds(Bytes size, Executor& engine, std::uint16_t protocol,
                              std::size_t rounds) const;

  const Algorithm& algorithm_;
  const Topology& topology_;
  CollectiveShape shape_;
  CollectivePlan plan_;
  std::optional<Paths> paths_;  // by hop
  std::optional<Fold> fold_;
  Detail detail_;
  Time alpha_;
  BytesPerSecond beta_{};
  bool crosses_network_ = false, has_room_ = false;
  std::map<std::pair<std::int64_t, std::uint16_t>, CollectiveResult> remembered_;
  std::mutex guard_;  // of remembered_
};

/// Where data, result and scratch of a collective of `size` bytes lie.
CollectiveBuffers buffers_for(Bytes size);

}  // namespace rehearse
