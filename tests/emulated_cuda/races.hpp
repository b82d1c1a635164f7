// Tells the thread sanitizer who touches memory and what orders it. Every stream is an actor, and
// so is every CUDA thread of the first few streams; the host runs their work in their names:
//
//   host      ─submit──────────────────▶ synchronize
//                ╲ release      ╱ acquire ╱
//   stream A      ●──[kernel]──● event   ╱
//                               ╲ acquire
//   stream B                     ●──[copy]
//
// One comes before another only where CUDA says so: submission, stream, event, barrier, __syncwarp,
// the data of a collective.
// So a missing event or barrier is a race whatever the order in which work happened to run. Without
// the sanitizer (REHEARSE_RACES) all of this is nothing.
#pragma once

#include <cstddef>
#include <memory>

namespace emulated_cuda {

/// One who touches memory; known to the sanitizer as a thread of its own.
class Actor {
 public:
  Actor();
  ~Actor();
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  void* fiber() const { return fiber_; }

 private:
  void* fiber_ = nullptr;
};

/// While it lives, this host thread acts in the other's name.
class As {
 public:
  explicit As(const Actor& actor);
  ~As();
  As(const As&) = delete;
  As& operator=(const As&) = delete;

 private:
  [[maybe_unused]] void* before_ = nullptr;  // by the thread sanitizer only
};

/// Within As: while it lives, this host thread acts in its own name again.
class AsHost {
 public:
  AsHost();
  ~AsHost();
  AsHost(const AsHost&) = delete;
  AsHost& operator=(const AsHost&) = delete;

 private:
  [[maybe_unused]] void* before_ = nullptr;  // by the thread sanitizer only
};

/// While it lives, what this host thread touches is not looked at.
class Unseen {
 public:
  Unseen();
  ~Unseen();
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

/// What comes after acquire() has seen all that came before release() of the same place.
void release(const void* place);
void acquire(const void* place);
/// As if every byte were read, or written, by who acts now.
void reads(const void* address, std::size_t bytes);
void writes(const void* address, std::size_t bytes);
/// Static variables are new: shared memory of the block before.
void forget_shared();
/// From a signal handler, for good: the host acts in its own name again.
void act_as_host();

#ifdef REHEARSE_RACES
constexpr bool sees_races = true;
#else
constexpr bool sees_races = false;
inline Actor::Actor() = default;
inline Actor::~Actor() = default;
inline As::As(const Actor&) {}
inline As::~As() = default;
inline AsHost::AsHost() = default;
inline AsHost::~AsHost() = default;
inline Unseen::Unseen() = default;
inline Unseen::~Unseen() = default;
inline void release(const void*) {}
inline void acquire(const void*) {}
inline void reads(const void*, std::size_t) {}
inline void writes(const void*, std::size_t) {}
inline void forget_shared() {}
inline void act_as_host() {}
#endif

/// A place for release() and acquire() that nothing else uses.
class Token {
 public:
  const void* place() const { return byte_.get(); }

 private:
  std::unique_ptr<char> byte_ = sees_races ? std::make_unique<char>() : nullptr;
};

}  // namespace emulated_cuda
