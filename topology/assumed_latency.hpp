// Latencies of links inside a node, for files that name the links but not how long they take:
// NCCL's own of one LL step (tuning.cc 2.23, hwLat: NVLINK 0.6 us, PCI 1.0 us over four links),
// laid on the links as in our catalog.
#pragma once

#include "sim/base/units.hpp"

namespace rehearse::assumed_latency {

constexpr Time nvlink = Time::picoseconds(600'000);
constexpr Time nvswitch = Time::picoseconds(300'000);
constexpr Time pcie = Time::picoseconds(250'000);
constexpr Time socket = Time::picoseconds(100'000);

}  // namespace rehearse::assumed_latency
