// ASSERT: what must hold if our own code is right. On in every build; a user's mistake is an
// InputError (sim/base/error.hpp) instead.
#pragma once

namespace rehearse {

/// Throws std::logic_error that names the condition and its place.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace rehearse

#define ASSERT(condition) \
  ((condition) ? void() : ::rehearse::assertion_failed(#condition, __FILE__, __LINE__))
