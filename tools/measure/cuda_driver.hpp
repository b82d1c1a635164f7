// What the CUDA driver says of this machine, asked at run time: the binary needs no CUDA to start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse {

struct GpuFacts {
  std::string name, pci;  // "0000:3b:00.0"
  std::uint64_t memory = 0;
  int major = 0, minor = 0;  // compute capability
  int processors = 0;
  std::optional<int> numa_node;
  std::vector<bool> reaches;  // by device: whether it can touch that one's memory
};

struct CudaFacts {
  std::string trouble;  // why no GPU can be used; empty: they can
  int driver = 0;       // 13000 for CUDA 13.0
  int nccl = 0;         // 22809 for 2.28.9; 0: its library was not found
  std::vector<GpuFacts> gpus;
};

/// What else is needed; empty: not found.
struct ToolFacts {
  std::string nvcc;     // the toolkit's compiler
  std::string program;  // rehearse-cuda, beside this one
  std::string mpirun;
};
ToolFacts find_tools();

/// `driver_library` is libcuda.so.1, unless a test has its own.
CudaFacts ask_cuda(const std::string& driver_library = "libcuda.so.1",
                   const std::string& nccl_library = "libnccl.so.2");

/// The report of `rehearse doctor`: what there is, what will work, what will not, and why.
std::string doctor_text(const CudaFacts& facts, const ToolFacts& tools);

}  // namespace rehearse
