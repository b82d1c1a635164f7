// What CUPTI, where its library can be loaded, tells of every kernel and copy: when it began and
// ended, on one clock for all devices, and for which op it was started.
//
// An op's number is pushed while the op is put on its streams (an external correlation id). CUPTI
// gives each call in between a correlation id, and each kernel and copy the id of its call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sim/program/stream_table.hpp"
#include "sim/program/timeline.hpp"

namespace rehearse {

class CudaRecords {
 public:
  /// Throws DeviceError where the library cannot be loaded, or this was built without its headers.
  /// At most one at a time: CUPTI knows one reader in a process.
  explicit CudaRecords(const std::string& library);
  ~CudaRecords();
  CudaRecords(const CudaRecords&) = delete;
  CudaRecords& operator=(const CudaRecords&) = delete;

  struct Span {
    std::uint64_t begin = UINT64_MAX, end = 0;  // nanoseconds after restart()
  };
  /// Forgets what was recorded before.
  void restart();

  /// What this thread starts meanwhile is the op's; with no records, nothing.
  class Of {
   public:
    Of(CudaRecords* records, OpId id) : records_{records} {
      if (records_ != nullptr) records_->push(id);
    }
    ~Of() {
      if (records_ != nullptr) records_->pop();
    }
    Of(const Of&) = delete;
    Of& operator=(const Of&) = delete;

   private:
    CudaRecords* records_;
  };
  /// When all work is done: from the first begin to the last end of what each op started.
  std::map<OpId, Span> take();

 private:
  void push(OpId id);
  void pop();

  struct Library;
  std::unique_ptr<Library> library_;
};

/// By op. One that started nothing has no record: it is over when all before it is.
LargeVector<Timeline::Span> recorded_spans(const Program& program, const StreamTable& streams,
                                           CudaRecords& records);

}  // namespace rehearse
