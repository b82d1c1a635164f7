// Fibers are ten times slower under the address sanitizer.
#pragma once

#include <cstdlib>

namespace rehearse {

/// Whether tests are to do less than they could; REHEARSE_ALL_ROWS in the environment says no.
inline bool is_sparing() {
#ifdef __SANITIZE_ADDRESS__
  return std::getenv("REHEARSE_ALL_ROWS") == nullptr;
#else
  return false;
#endif
}

}  // namespace rehearse
