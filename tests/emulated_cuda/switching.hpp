// Switches between stacks, told to the address sanitizer: CUDA threads are fibers on stacks of
// their own. Who acts there, the thread sanitizer is told by races.hpp.
#pragma once

#include <ucontext.h>

#include <cstddef>

namespace emulated_cuda {

/// What runs on one stack. Where it stands while another runs.
struct Context {
  ucontext_t whole{};
  void* place[5]{};  // of __builtin_setjmp
  bool is_fresh = false;
  // For the address sanitizer.
  const void* stack = nullptr;
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;

  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

/// Pages come when they are touched, to the sanitizers too. Stacks end at different places of their
/// pages: hundreds that all begin alike would push each other out of the caches.
class Stack {
 public:
  Stack();
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  char* begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }

 private:
  char* begin_;
  std::size_t bytes_;
};

/// `entry` will run on the stack, and calls arrive() first; it never returns.
void prepare(Context& context, char* stack, std::size_t bytes, void (*entry)());
/// Returns when something switches back to `from`.
void switch_between(Context& from, Context& to);
/// On a stack that just began.
void arrive();
/// From where there is no way back: a signal handler.
[[noreturn]] void abandon_for(Context& to);

}  // namespace emulated_cuda
