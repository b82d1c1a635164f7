// CUDA's atomics, which order nothing else. Fibers take turns only where they wait, so that they
// need not be atomic; but the thread sanitizer must see that they are.
#pragma once

inline unsigned atomicAdd(unsigned* address, unsigned value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
inline unsigned atomicMax(unsigned* address, unsigned value) {
  unsigned before = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (value > before && !__atomic_compare_exchange_n(address, &before, value, false,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return before;
}
inline unsigned atomicOr(unsigned* address, unsigned value) {
  return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
