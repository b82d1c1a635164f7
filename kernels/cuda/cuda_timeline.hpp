// When ops ran, by CUPTI's records of what they started, and as several processes know it together.
#pragma once

#include "kernels/cuda/cuda_executor.hpp"
#include "kernels/cuda/cuda_records.hpp"
#include "sim/program/stream_table.hpp"

namespace rehearse {

/// By op. One that started nothing has no record: it is over when all before it is.
LargeVector<Timeline::Span> recorded_spans(const Program& program, const StreamTable& streams,
                                           CudaRecords& records);

/// Fills in what other processes know; never() is what this one does not. An op begins where its
/// stream is, and ends when it has ended everywhere. The clocks of this process began at
/// `clocks_began`.
void share_spans(const Program& program, const CudaProcesses& processes,
                 std::chrono::nanoseconds clocks_began, LargeVector<Timeline::Span>& spans);

}  // namespace rehearse
