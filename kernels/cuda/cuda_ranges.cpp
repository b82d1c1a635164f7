// NVTX is headers only: they load the profiler's library, which the environment names.
#include "kernels/cuda/cuda_ranges.hpp"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

namespace rehearse {

CudaRanges::CudaRanges() : domain_{nvtxDomainCreateA("rehearse")} {}

void CudaRanges::Destroy::operator()(nvtxDomainRegistration_st* domain) const {
  nvtxDomainDestroy(domain);
}

void CudaRanges::name(CUstream_st* stream, Rank rank, Stream which) const {
  if (domain_ == nullptr) return;
  nvtxNameCudaStreamA(stream, fmt::format("rank {} {}", index(rank), stream_name(which)).c_str());
}

CudaRanges::Range::Range(const CudaRanges& all, const Program& program, OpId id)
    : domain_{all.domain_.get()} {
  if (domain_ == nullptr) return;
  const std::string label = program.label(id);
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = label.c_str();
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = index(id);
  nvtxDomainRangePushEx(domain_, &attributes);
}

CudaRanges::Range::~Range() {
  if (domain_ != nullptr) nvtxDomainRangePop(domain_);
}

}  // namespace rehearse

#else

namespace rehearse {

CudaRanges::CudaRanges() = default;
void CudaRanges::Destroy::operator()(nvtxDomainRegistration_st*) const {}
void CudaRanges::name(CUstream_st*, Rank, Stream) const {}
CudaRanges::Range::Range(const CudaRanges&, const Program&, OpId) : domain_{nullptr} {}
CudaRanges::Range::~Range() = default;

}  // namespace rehearse

#endif
