// Pages of the arenas are opened and closed as work begins and ends; freed memory is guarded as the
// gaps between allocations are.
#include "tests/emulated_cuda/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "sim/base/assert.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace emulated_cuda {

namespace {

constexpr std::size_t gap = 256;  // before and behind each allocation; also CUDA's alignment
constexpr unsigned char untouched = 0xff;

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void forbid([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __asan_poison_memory_region(address, bytes);
#endif
}
void permit([[maybe_unused]] const void* address, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(address, bytes);
#endif
}

bool is_untouched(const unsigned char* begin, const unsigned char* end) {
  permit(begin, static_cast<std::size_t>(end - begin));
  // The first is right and each is like the one before: memcmp is quick.
  const auto bytes = static_cast<std::size_t>(end - begin);
  const bool result =
      bytes == 0 || (*begin == untouched && std::memcmp(begin, begin + 1, bytes - 1) == 0);
  forbid(begin, static_cast<std::size_t>(end - begin));
  return result;
}

}  // namespace

Memory::Memory(int devices, std::size_t bytes)
    : capacity_{bytes}, reserved_{rounded(4 * bytes, 4096)} {
  for (int device = 0; device < devices; ++device) {
    void* pages =
        mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT(pages != MAP_FAILED);
    Arena arena;
    arena.base = static_cast<unsigned char*>(pages);
    arena.peers.assign(static_cast<std::size_t>(devices), false);
    arenas_.push_back(std::move(arena));
    forbid(pages, reserved_);
  }
}

Memory::~Memory() {
  for (const Arena& arena : arenas_) {
    permit(arena.base, reserved_);
    munmap(arena.base, reserved_);
  }
}

std::size_t Memory::used(int device) const {
  return arenas_[static_cast<std::size_t>(device)].used;
}

void Memory::protect(int device, bool open) {
  const Arena& arena = arenas_[static_cast<std::size_t>(device)];
  if (arena.top == 0) return;
  ASSERT(mprotect(arena.base, rounded(arena.top, 4096),
                  open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
}

void* Memory::allocate(int device, std::size_t bytes) {
  Arena& arena = arenas_[static_cast<std::size_t>(device)];
  const std::size_t room = rounded(bytes, gap);
  const std::size_t begin = arena.top == 0 ? gap : arena.top;
  if (arena.used + room > capacity_ || begin + room + gap > reserved_) return nullptr;
  arena.top = begin + room + gap;
  arena.used += room;
  protect(device, true);
  const std::size_t fresh_from = begin == gap ? 0 : begin;
  permit(arena.base + fresh_from, arena.top - fresh_from);
  std::memset(arena.base + fresh_from, untouched, arena.top - fresh_from);
  forbid(arena.base + fresh_from, arena.top - fresh_from);
  permit(arena.base + begin, bytes);
  protect(device, false);
  arena.allocations[arena.base + begin] = {bytes, false};
  return arena.base + begin;
}

bool Memory::free(void* address) {
  const int device = owner(address);
  if (device < 0) return false;
  Arena& arena = arenas_[static_cast<std::size_t>(device)];
  const auto found = arena.allocations.find(static_cast<unsigned char*>(address));
  if (found == arena.allocations.end() || found->second.is_free) return false;
  found->second.is_free = true;
  arena.used -= rounded(found->second.bytes, gap);
  protect(device, true);
  std::memset(address, untouched, found->second.bytes);
  protect(device, false);
  forbid(address, found->second.bytes);
  return true;
}

int Memory::owner(const void* address) const {
  const auto* byte = static_cast<const unsigned char*>(address);
  for (std::size_t device = 0; device < arenas_.size(); ++device)
    if (byte >= arenas_[device].base && byte < arenas_[device].base + reserved_)
      return static_cast<int>(device);
  return -1;
}

bool Memory::holds(const void* address, std::size_t bytes) const {
  const int device = owner(address);
  if (device < 0) return false;
  const Arena& arena = arenas_[static_cast<std::size_t>(device)];
  const auto* byte = static_cast<const unsigned char*>(address);
  auto at = arena.allocations.upper_bound(byte);
  if (at == arena.allocations.begin()) return false;
  --at;
  return !at->second.is_free && byte + bytes <= at->first + at->second.bytes;
}

std::string Memory::describe(const void* address) const {
  const int device = owner(address);
  if (device < 0) return "memory of the host";
  const Arena& arena = arenas_[static_cast<std::size_t>(device)];
  const auto* byte = static_cast<const unsigned char*>(address);
  const std::string whose = " of device " + std::to_string(device);
  auto at = arena.allocations.upper_bound(byte);
  if (at == arena.allocations.begin()) return "memory that was never allocated" + whose;
  --at;
  const std::string what = std::string{at->second.is_free ? "freed memory" : "an allocation"} +
                           " of " + std::to_string(at->second.bytes) + " bytes" + whose;
  const auto offset = static_cast<std::size_t>(byte - at->first);
  if (offset < at->second.bytes) return what;
  return std::to_string(offset - at->second.bytes) + " bytes behind " + what;
}

bool Memory::enable_peer(int device, int peer) {
  auto enabled = arenas_[static_cast<std::size_t>(device)].peers[static_cast<std::size_t>(peer)];
  if (enabled) return false;
  enabled = true;
  return true;
}

bool Memory::can_touch(int device, int other) const {
  return device == other ||
         arenas_[static_cast<std::size_t>(device)].peers[static_cast<std::size_t>(other)];
}

std::vector<int> Memory::reach(int device) const {
  std::vector<int> all;
  for (int other = 0; other < devices(); ++other)
    if (can_touch(device, other)) all.push_back(other);
  return all;
}

Memory::Access::Access(Memory& memory, std::span<const int> devices)
    : memory_{memory}, devices_{devices.begin(), devices.end()} {
  for (const int device : devices_) memory_.protect(device, true);
}

Memory::Access::~Access() {
  for (const int device : devices_) memory_.protect(device, false);
}

std::optional<std::string> Memory::damage_of(int device) {
  Arena& arena = arenas_[static_cast<std::size_t>(device)];
  const unsigned char* checked = arena.base;
  for (const auto& [begin, allocation] : arena.allocations) {
    if (!is_untouched(checked, begin)) return "before " + describe(begin);
    checked = allocation.is_free ? begin : begin + allocation.bytes;
    const auto next = arena.allocations.upper_bound(begin);
    const unsigned char* end =
        next == arena.allocations.end() ? arena.base + arena.top : next->first;
    if (!is_untouched(checked, end))
      return (allocation.is_free ? "in " : "behind ") + describe(begin);
    checked = end;
  }
  return std::nullopt;
}

std::optional<std::string> Memory::damage(std::span<const int> devices) {
  for (const int device : devices)
    if (auto found = damage_of(device)) return found;
  return std::nullopt;
}

std::size_t Memory::allocations() const {
  std::size_t count = 0;
  for (const Arena& arena : arenas_)
    count += static_cast<std::size_t>(std::ranges::count_if(
        arena.allocations, [](const auto& each) { return !each.second.is_free; }));
  return count;
}

}  // namespace emulated_cuda
