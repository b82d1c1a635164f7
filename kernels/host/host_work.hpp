// What one op does to memory, wherever it runs: the part that executors share.
#pragma once

#include "kernels/host/host_memory.hpp"

namespace rehearse {

/// Where both ends of a transfer are in this memory: copied, added or maximised, to one or many.
void run_transfer(const Program& program, const Transfer& work, HostMemory& memory);

/// All kernels of a compute op on the bytes of its accesses.
void run_compute(const Program& program, const Program::Op& op, HostMemory& memory);

}  // namespace rehearse
