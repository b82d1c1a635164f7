// The measurements that calibration needs, made by running small Programs on real ranks: what is
// measured is what the executor does, its own cost and all.
#pragma once

#include <functional>

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
  std::vector<Sample> crowded;  // two messages at once each way, x bytes in both: not fitted
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
/// Kernels take as long as their numbers make them.
enum class Content : std::uint8_t { numbers, state, indices };
/// A compute op of a program as it is, its kernels and all; what it works on was not touched
/// lately. `content` tells what its slices hold.
KernelMeasurement measure_op(const HostRanks& ranks, std::size_t ranks_at_once,
                             const Program& program, const Program::Op& op,
                             const std::function<Content(const Slice&)>& content);
/// y = factor x over so many bytes in all (read and written).
KernelMeasurement measure_scale(const HostRanks& ranks, std::size_t ranks_at_once, Bytes traffic);

/// What messages cost products beside them: the time by which both together take longer than the
/// products alone, as a share of the messages' time alone. 0: nothing; 1: one processor does both.
/// And by how much the messages' rate falls.
struct Slowing {
  double compute = 0, communication = 0;
};
Slowing measure_slowing(const HostRanks& ranks, const Gemm& shape, Bytes message);

}  // namespace rehearse
