// What the engines are measured on: a machine and a Program for it, every transfer spelled out.
#pragma once

#include <cstddef>

#include "sim/program/program.hpp"
#include "topology/topology.hpp"

namespace rehearse {

struct BenchCase {
  Topology topology;
  Program program;
};

/// 2(n-1) steps of n transfers around a ring of n GPUs: an all-reduce of 1 GiB.
BenchCase ring_all_reduce(std::size_t ranks);

/// Nodes of `gpus` GPUs behind one NIC each; every GPU sends 1 MiB to every other one at once.
BenchCase all_to_all(std::size_t nodes, std::size_t gpus);

}  // namespace rehearse
