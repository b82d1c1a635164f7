// Norms of gradients and weights, and clipping by them (Pascanu, Mikolov and Bengio 2013).
#pragma once

#include <span>

namespace rehearse {

/// Σ x² in fp64, in the order of memory. Parts of a vector, on one rank or many, are added up
/// before the root is taken; how it is cut shows in the last bits of the fp64 sum only.
double sum_of_squares(std::span<const float> x);

/// min(1, limit / norm): what gradients of this norm are multiplied by. `norm` is finite.
float clip_factor(double norm, double limit);

}  // namespace rehearse
