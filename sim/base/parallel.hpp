// Independent pieces of work on all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace rehearse {

/// A thread that is waited for at the end of its scope: std::jthread is not in every C++20 library
/// (libc++ 14, which the lab is built with).
struct ScopedThread {
  std::thread thread;
  template <class Work>
  explicit ScopedThread(Work&& work) : thread{std::forward<Work>(work)} {}
  ScopedThread(ScopedThread&&) noexcept = default;
  ~ScopedThread() {
    if (thread.joinable()) thread.join();
  }
};

/// Calls work(i) for every i below `count`, in no certain order, on up to `threads` threads. The
/// first exception thrown stops what has not begun, and is thrown again here.
template <class Work>
void for_each_in_parallel(std::size_t count, std::size_t threads, Work&& work) {
  threads = std::min(threads, count);
  if (threads < 2) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<std::size_t> next = 0;
  std::mutex guard;
  std::exception_ptr failure;
  {
    std::vector<ScopedThread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&] {
        for (std::size_t i = next++; i < count; i = next++) {
          try {
            work(i);
          } catch (...) {
            const std::lock_guard lock(guard);
            if (!failure) failure = std::current_exception();
            next = count;
          }
        }
      });
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rehearse
