// A thread that runs the kernels of compute ops, one after the other, for another that must not be
// held up.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/host/host_memory.hpp"
#include "kernels/host/mailbox.hpp"

namespace rehearse {

class ComputeThread {
 public:
  /// Both outlive it.
  ComputeThread(const Program& program, HostMemory& memory);
  ~ComputeThread();

  void give(OpId op);
  /// Those that have ended since the last call, in their order. Throws what a kernel threw.
  std::vector<OpId> take();
  bool is_busy() const { return given_ > taken_; }

 private:
  void work();

  const Program& program_;
  HostMemory& memory_;
  Mailbox to_do_, done_;
  std::vector<std::uint32_t> next_to_do_, next_done_;
  std::size_t given_ = 0, taken_ = 0;
  std::atomic<bool> stops_{false};
  std::exception_ptr failure_;  // written before the op is handed back
  std::jthread thread_;
};

}  // namespace rehearse
