// The emulated machine, as its tests see it: how many devices, how much memory, which seed, which
// faults; and what was found wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulated_cuda {

/// What goes wrong on purpose. Numbers count calls from 1; 0 is never.
struct Faults {
  int failing_launch = 0;    // this kernel fails when it runs
  int killing_launch = 0;    // this kernel kills the process
  int nccl_error = 0;        // this NCCL call never ends; its communicator has an error
  int vanished_device = -1;  // its NCCL calls are lost; the others learn of it after a while
};

struct Options {
  int devices = 2;
  std::size_t memory = 16 << 20;  // bytes of each device
  std::uint64_t seed = 1;         // of the order in which ready work runs
  bool peers = true;              // whether devices can reach each other's memory at all
  Faults faults;
  int capability = 80;  // sm_80: fp8 begins with 89
};

/// Begins anew. Whatever is left of before is forgotten; `leaks` tells.
void reset(const Options& options);
/// Streams, events, communicators, handles and memory that were made and not destroyed.
std::string leaks();
/// What the machine complained about since the last reset, one line each; also on stderr.
const std::vector<std::string>& complaints();

}  // namespace emulated_cuda
