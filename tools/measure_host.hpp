// The measurements that calibration needs, made by running small Programs on real ranks: what is
// measured is what the executor does, its own cost and all.
#pragma once

#include "kernels/collective_check.hpp"
#include "tools/host_ranks.hpp"
#include "tools/line_fit.hpp"

namespace rehearse {

struct LinkMeasurement {
  Rank source{}, target{};
  LineFit one_way;              // there and back again in turns: alpha and one over beta
  LineFit both_ways;            // both directions at once, laid down and added in turns
  Time per_message;             // of tiny messages in a row on one stream
  std::vector<Sample> samples;  // of both_ways
};

/// Messages between two ranks over sizes from 4 B to `largest`.
LinkMeasurement measure_link(const HostRanks& ranks, Rank source, Rank target, Bytes largest);

/// What a kernel takes when all `ranks_at_once` run it at the same time: the median of its spans.
struct KernelMeasurement {
  Time time;
  double spread = 0;
};
KernelMeasurement measure_gemm(const HostRanks& ranks, std::size_t ranks_at_once,
                               const Gemm& shape);
/// y = factor x over so many bytes in all (read and written).
KernelMeasurement measure_scale(const HostRanks& ranks, std::size_t ranks_at_once, Bytes traffic);

/// How much longer products take while the rank sends beside them, as a share of the time with it:
/// 0 for nothing, 0.5 for twice as long; and the same for the messages.
struct Slowing {
  double compute = 0, communication = 0;
};
Slowing measure_slowing(const HostRanks& ranks, const Gemm& shape, Bytes message);

}  // namespace rehearse
