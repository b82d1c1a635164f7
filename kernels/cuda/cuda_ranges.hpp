// Names for profilers (NVTX): while an op is put on its streams it is a range with the op's name,
// and streams are named by rank, so that Nsight shows the same words as our traces. Without a
// profiler nothing is loaded, and nothing is done.
#pragma once

#include <memory>

#include "sim/program/program.hpp"

struct CUstream_st;
struct nvtxDomainRegistration_st;

namespace rehearse {

class CudaRanges {
 public:
  CudaRanges();
  void name(CUstream_st* stream, Rank rank, Stream which) const;

  /// A range of the calling thread while it lives.
  class Range {
   public:
    Range(const CudaRanges& all, const Program& program, OpId id);
    ~Range();
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;

   private:
    nvtxDomainRegistration_st* domain_;
  };

 private:
  struct Destroy {
    void operator()(nvtxDomainRegistration_st* domain) const;
  };
  std::unique_ptr<nvtxDomainRegistration_st, Destroy> domain_;  // null: nobody looks
};

}  // namespace rehearse
