// swapcontext asks the kernel to exchange signal masks, which takes twenty times as long as the
// switch: after the first entry the compiler's own setjmp and longjmp do, which know of no masks
// and no handlers. The address sanitizer does not follow those to other stacks.
#include "tests/emulated_cuda/switching.hpp"

#include <sys/mman.h>

#include <cstdlib>

#include "sim/base/assert.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated_cuda {

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool is_followed = true;
#else
constexpr bool is_followed = false;
#endif

constexpr std::size_t most_stack = 256 << 10, cache_line = 64;

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
  if (!is_followed && !to.is_fresh) __builtin_longjmp(to.place, 1);
  to.is_fresh = false;
  setcontext(&to.whole);
  std::abort();
}

}  // namespace

Stack::Stack()
    : begin_{static_cast<char*>(mmap(nullptr, most_stack, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))} {
  static std::size_t number = 0;
  ASSERT(begin_ != MAP_FAILED);
  bytes_ = most_stack - number++ % 256 * 5 * cache_line;
}
Stack::~Stack() { munmap(begin_, most_stack); }

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
  } else if (__builtin_setjmp(from.place) == 0) {
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
