// What orders actors, in the words of the thread sanitizer: fibers, without their own order.
#include "tests/emulated_cuda/races.hpp"

#ifdef REHEARSE_RACES

#include <sanitizer/tsan_interface.h>

#include <cstdint>
#include <vector>

extern "C" {
// Of the sanitizer's library, not in its header.
void __tsan_read_range(void* address, unsigned long bytes);
void __tsan_write_range(void* address, unsigned long bytes);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void __tsan_java_init(unsigned long begin, unsigned long bytes);
void __tsan_java_alloc(unsigned long begin, unsigned long bytes);
void __tsan_java_free(unsigned long begin, unsigned long bytes);
// Of the linker: static variables without a value.
extern char __bss_start[], _end[];
}

namespace emulated_cuda {

namespace {

void become(void* fiber) { __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync); }

// Fibers are used again: the sanitizer knows 8,000. Who had one before is over when it goes back,
// and the host knows of it.
std::vector<void*>& idle() {
  static auto* all = new std::vector<void*>;
  return *all;
}

thread_local void* host = nullptr;  // who this thread is when it acts as nobody else

}  // namespace

Actor::Actor() {
  if (idle().empty()) {
    fiber_ = __tsan_create_fiber(0);
  } else {
    fiber_ = idle().back();
    idle().pop_back();
  }
}

Actor::~Actor() {
  const Token end;
  {
    const As self{*this};
    release(end.place());
  }
  acquire(end.place());
  idle().push_back(fiber_);
}

As::As(const Actor& actor) : before_{__tsan_get_current_fiber()} {
  if (host == nullptr) host = before_;
  become(actor.fiber());
}
As::~As() { become(before_); }

AsHost::AsHost() : before_{__tsan_get_current_fiber()} { act_as_host(); }
AsHost::~AsHost() { become(before_); }

Unseen::Unseen() {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
Unseen::~Unseen() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void release(const void* place) { __tsan_release(const_cast<void*>(place)); }
void acquire(const void* place) { __tsan_acquire(const_cast<void*>(place)); }
void reads(const void* address, std::size_t bytes) {
  if (bytes > 0) __tsan_read_range(const_cast<void*>(address), bytes);
}
void writes(const void* address, std::size_t bytes) {
  if (bytes > 0) __tsan_write_range(const_cast<void*>(address), bytes);
}

// Only the interface for Java's heap can say that memory is new.
void forget_shared() {
  constexpr std::uintptr_t unit = 8;
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(__bss_start) / unit * unit;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(_end) + unit - 1) / unit * unit;
  static const bool is_known = (__tsan_java_init(begin, end - begin), true);
  if (is_known) __tsan_java_alloc(begin, end - begin);
  __tsan_java_free(begin, unit);
}

void act_as_host() {
  if (host != nullptr) become(host);
}

}  // namespace emulated_cuda

#endif
