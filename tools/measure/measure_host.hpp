// The measurements that calibration needs, as small Programs on real ranks: what is measured is
// what the executor does, its own cost and all. Each adds its trials when it is made, and says what
// they have told when they have run.
#pragma once

#include <vector>

#include "tools/measure/line_fit.hpp"
#include "tools/measure/trials.hpp"

namespace rehearse {

struct LinkMeasurement {
  Rank source{}, target{};
  LineFit one_way;              // there and back again in turns: alpha and one over beta
  LineFit both_ways;            // both directions at once, laid down and added in turns
  Time per_message;             // of tiny messages in a row on one stream
  std::vector<Sample> samples;  // of both_ways
  std::vector<Sample> crowded;  // two messages at once each way, x bytes in both: not fitted
};

/// Messages between two ranks over sizes from 4 B to `largest`.
class LinkTrials {
 public:
  LinkTrials(Trials& trials, Rank source, Rank target, Bytes largest);
  LinkMeasurement measured() const;

 private:
  struct Sized {
    Bytes size;
    const Trial* trial;
  };
  Rank source_, target_;
  std::vector<Sized> one_way_, both_ways_, crowded_;
  const Trial* in_a_row_;
};

/// y = factor x over so many bytes in all (read and written), on all ranks at the same time.
class ScaleTrial {
 public:
  ScaleTrial(Trials& trials, std::size_t ranks, Bytes traffic);
  /// The median of its kernels.
  Time measured() const;
  Bytes traffic() const { return traffic_; }

 private:
  Bytes traffic_;
  const Trial& trial_;
};

/// What messages cost products beside them: the time by which both together take longer than the
/// products alone, as a share of the messages' time alone. 0: nothing; 1: one processor does both.
/// And by how much the messages' rate falls.
struct Slowing {
  double compute = 0, communication = 0;
};
class SlowingTrials {
 public:
  SlowingTrials(Trials& trials, const Gemm& shape, Bytes message);
  Slowing measured() const;

 private:
  const Trial &both_, &products_, &messages_;
};

}  // namespace rehearse
