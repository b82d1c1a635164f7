// CUDA's atomics: fibers take turns only where they wait, so a plain read and write is one step.
#pragma once

inline unsigned atomicAdd(unsigned* address, unsigned value) {
  const unsigned before = *address;
  *address = before + value;
  return before;
}
inline unsigned atomicMax(unsigned* address, unsigned value) {
  const unsigned before = *address;
  if (value > before) *address = value;
  return before;
}
inline unsigned atomicOr(unsigned* address, unsigned value) {
  const unsigned before = *address;
  *address = before | value;
  return before;
}
