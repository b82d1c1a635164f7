// How long a collective takes: its pattern laid on the machine once, then simulated for any size.
// Ranks that are alike are folded, rounds that are alike are simulated until they repeat exactly,
// and sizes that move the same chunks are remembered. `Detail::transfers` does none of that.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/executor.hpp"
#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

enum class Detail : std::uint8_t { folded, transfers };

struct CollectiveResult {
  Time time;
  std::uint64_t transfers = 0;  // simulated, or remembered as simulated
  std::uint64_t events = 0;
  bool remembered = false;
};

class CollectiveRehearsal {
 public:
  /// The routing must outlive it. Throws InputError when the algorithm refuses the shape.
  CollectiveRehearsal(const Algorithm& algorithm, CollectiveShape shape, Routing& routing,
                      Detail detail);

  /// Simulates it for `size` bytes (of the whole data, as nccl-tests counts) on the engine.
  CollectiveResult run(Bytes size, Executor& engine);

  /// The whole program for a size, for traces, other executors and explanations; folded unless
  /// the detail is `transfers`.
  Program program(Bytes size) const;

  const Algorithm& algorithm() const { return algorithm_; }
  std::size_t roles() const { return fold_.roles; }
  std::size_t hops() const { return fold_.kept; }
  /// The longest latency and the lowest rate alone of any hop: alpha and beta of the closed forms.
  Time alpha() const { return alpha_; }
  BytesPerSecond beta() const { return beta_; }

 private:
  std::size_t pieces(Bytes size) const;
  Program emitted(Bytes size, std::size_t rounds) const;
  CollectiveResult run_rounds(Bytes size, Executor& engine, std::size_t rounds) const;

  const Algorithm& algorithm_;
  CollectiveShape shape_;
  CollectivePlan plan_;
  Fold fold_;
  Detail detail_;
  Time alpha_;
  BytesPerSecond beta_{};
  std::map<std::int64_t, CollectiveResult> remembered_;
};

/// Where data, result and scratch of a collective of `size` bytes lie.
CollectiveBuffers buffers_for(Bytes size);

}  // namespace rehearse
