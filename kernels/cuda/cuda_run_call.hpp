// Starts the kernels that ops of a Program name (sim/program/kernel_list.hpp) on a stream of a GPU:
// the same calls as kernels/host/run_call.hpp runs on the host.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "sim/program/program.hpp"

struct CUstream_st;
struct cublasContext;

namespace rehearse {

/// Where a call is started: its stream, its device's cuBLAS, and memory that is its own.
struct CallPlace {
  CUstream_st* stream = nullptr;
  cublasContext* blas = nullptr;
  std::function<std::byte*(std::size_t bytes)> scratch;  // more of it, until the call has ended
};

/// One kernel on its operands, each as many bytes as its slice. Operands stored in 16 bits are
/// widened to fp32 before and rounded after, but for those of matrix products.
void start_call(const CallPlace& place, const KernelCall& call,
                std::span<const std::span<std::byte>> operands);

}  // namespace rehearse
