// The words that PyTorch and NCCL use for collectives, found from an op's label.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

struct KernelName {
  std::string kernel;      // "ncclDevKernel_AllReduce_RING"
  std::string collective;  // "allreduce", as Kineto's "Collective name"
};

/// From labels like "ring_all_reduce"; a label that names no collective is a send and receive.
KernelName kernel_name(std::string_view label);

}  // namespace rehearse
