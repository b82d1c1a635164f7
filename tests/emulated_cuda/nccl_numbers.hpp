// The arithmetic of NCCL's types and operations.
#pragma once

#include <nccl.h>

#include <cstddef>

namespace emulated_cuda {

std::size_t bytes_of(ncclDataType_t type);
/// total = total (operation) input, number by number.
void combine(ncclDataType_t type, ncclRedOp_t operation, const void* input, void* total,
             std::size_t count);
void divide(ncclDataType_t type, void* total, std::size_t count, std::size_t by);

}  // namespace emulated_cuda
