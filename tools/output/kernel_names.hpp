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

/// The same for a collective of a training step, where the label says which layer it is of:
/// "attention.all_reduce" in bf16 is "ncclDevKernel_AllReduce_Sum_bf16".
KernelName nccl_kernel_name(std::string_view label, std::string_view type);

}  // namespace rehearse
