// swapcontext asks the kernel to exchange signal masks, which takes twenty times as long as the
// switch: after the first entry _setjmp and _longjmp do. The sanitizers do not follow those to
// other stacks.
#include "tests/emulated_cuda/switching.hpp"

#include <sys/mman.h>

#include <cstdlib>

#include "sim/assert.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated_cuda {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(REHEARSE_RACES)
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
}

void go_to(Context& to) {
  if (!is_followed && !to.is_fresh) _longjmp(to.place, 1);
  to.is_fresh = false;
  setcontext(&to.whole);
  std::abort();
}

}  // namespace

Stack::Stack()
    : begin_{static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))} {
  ASSERT(begin_ != MAP_FAILED);
}
Stack::~Stack() { munmap(begin_, bytes); }

void prepare(Context& context, char* stack, std::size_t bytes, void (*entry)()) {
  getcontext(&context.whole);
  context.whole.uc_stack.ss_sp = stack;
  context.whole.uc_stack.ss_size = bytes;
  context.whole.uc_link = nullptr;
  makecontext(&context.whole, entry, 0);
  context.is_fresh = true;
  context.stack = stack;
  context.stack_bytes = bytes;
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
