// swapcontext asks the kernel to exchange signal masks, which takes twenty times as long as the
// switch: after the first entry _setjmp and _longjmp do. The sanitizers do not follow those to
// other stacks.
#include "tests/emulated_cuda/switching.hpp"

#include <cstdlib>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace emulated_cuda {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_followed = true;
#else
constexpr bool is_followed = false;
#endif

Context* left = nullptr;     // by the last switch
Context* arrived = nullptr;  // the one it went to

void before_switch([[maybe_unused]] Context& from, [[maybe_unused]] Context& to) {
  left = &from;
  arrived = &to;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
#endif
#ifdef __SANITIZE_THREAD__
  from.fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.fiber, 0);
#endif
}

void go_to(Context& to) {
  if (!is_followed && !to.is_fresh) _longjmp(to.place, 1);
  to.is_fresh = false;
  setcontext(&to.whole);
  std::abort();
}

}  // namespace

Context::~Context() {
#ifdef __SANITIZE_THREAD__
  if (stack != nullptr && fiber != nullptr) __tsan_destroy_fiber(fiber);
#endif
}

void prepare(Context& context, char* stack, std::size_t bytes, void (*entry)()) {
  getcontext(&context.whole);
  context.whole.uc_stack.ss_sp = stack;
  context.whole.uc_stack.ss_size = bytes;
  context.whole.uc_link = nullptr;
  makecontext(&context.whole, entry, 0);
  context.is_fresh = true;
  context.stack = stack;
  context.stack_bytes = bytes;
#ifdef __SANITIZE_THREAD__
  if (context.fiber == nullptr) context.fiber = __tsan_create_fiber(0);
#endif
}

void arrive() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(arrived->fake_stack, &left->stack, &left->stack_bytes);
#endif
}

void switch_between(Context& from, Context& to) {
  before_switch(from, to);
  if (is_followed) {
    to.is_fresh = false;
    swapcontext(&from.whole, &to.whole);
  } else if (_setjmp(from.place) == 0) {
    go_to(to);
  }
  arrive();
}

void abandon_for(Context& to) {
  static Context nobody;
  before_switch(nobody, to);
  go_to(to);
  std::abort();
}

}  // namespace emulated_cuda
