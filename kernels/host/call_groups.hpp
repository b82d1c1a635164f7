// The kernels of the list by what they belong to; run_call.cpp has those of layers.
#pragma once

#include "kernels/host/call_operands.hpp"

namespace rehearse {

/// Embeddings, positions and losses.
void run_end(Kernel kernel, CallOperands& operands);
/// Sparse gradients.
void run_compression(Kernel kernel, CallOperands& operands);
/// Dropout and dynamic loss scaling.
void run_regular(Kernel kernel, CallOperands& operands);
/// Norms of gradients and optimizers.
void run_update(Kernel kernel, CallOperands& operands);

}  // namespace rehearse
