// Random numbers by counter, not by state: draw (seed, what for, who, how many-eth) is a function
// of these four, so it does not depend on the order of draws, on threads or on who else draws.
// splitmix64 (Steele, Lea and Flood 2014) mixes each of them in turn.
#pragma once

#include <cstdint>

#include "sim/scenario/scenario.hpp"

namespace rehearse {

/// What a number is drawn for: draws for different ends have nothing to do with each other.
enum class DrawFor : std::uint8_t { kernel, rank, exchange, pause };

struct DrawAt {
  std::uint64_t seed = 0;
  DrawFor what{};
  std::uint64_t who = 0, number = 0;
};

/// In (0, 1). `again` counts the uniform numbers of one draw.
double uniform_draw(const DrawAt& at, std::uint64_t again = 0);
/// Mean 0, deviation 1: Box and Muller 1958.
double normal_draw(const DrawAt& at, std::uint64_t again = 0);
/// Mean 1.
double exponential_draw(const DrawAt& at);
/// Mean 1 and this coefficient of variation; above 0. (Gamma with 1 is the exponential
/// distribution.)
double jitter_draw(Jitter distribution, double variation, const DrawAt& at);

}  // namespace rehearse
