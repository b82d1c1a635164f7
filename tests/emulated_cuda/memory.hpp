// The memory of the emulated devices: real addresses that fault unless work of a device that may
// touch them runs. Around each allocation are bytes that nobody may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace emulated_cuda {

class Memory {
 public:
  Memory(int devices, std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int devices() const { return static_cast<int>(arenas_.size()); }
  std::size_t capacity() const { return capacity_; }
  std::size_t used(int device) const;

  /// Filled with ones, which are NaN in every format; null when there is no room.
  void* allocate(int device, std::size_t bytes);
  /// False if the address is not the begin of an allocation. What is freed is not used again.
  bool free(void* address);

  /// Whose memory this is; -1: the host's.
  int owner(const void* address) const;
  /// Whether all of these bytes lie in one allocation.
  bool holds(const void* address, std::size_t bytes) const;
  /// "16 bytes behind an allocation of 400 bytes of device 1"
  std::string describe(const void* address) const;

  bool enable_peer(int device, int peer);  // false: it is already
  bool can_touch(int device, int other) const;

  /// Opens the memory of these devices while it lives.
  class Access {
   public:
    Access(Memory& memory, std::span<const int> devices);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    Memory& memory_;
    std::vector<int> devices_;
  };
  /// Of what a device may touch: its own, and its peers'.
  std::vector<int> reach(int device) const;

  /// Bytes that nobody may change and that were changed, if any; the memory must be open.
  std::optional<std::string> damage(std::span<const int> devices);
  std::size_t allocations() const;

 private:
  struct Allocation {
    std::size_t bytes = 0;
    bool is_free = false;
  };
  struct Arena {
    unsigned char* base = nullptr;
    std::size_t top = 0, used = 0;
    std::map<const unsigned char*, Allocation> allocations;
    std::vector<bool> peers;
  };
  void protect(int device, bool open);
  std::optional<std::string> damage_of(int device);

  std::size_t capacity_, reserved_;
  std::vector<Arena> arenas_;
};

}  // namespace emulated_cuda
