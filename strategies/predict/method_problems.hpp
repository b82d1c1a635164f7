// What of [imperfection], [compression] and mixed precision cannot be meant, each with its reason.
#pragma once

#include <vector>

#include "sim/scenario/scenario.hpp"
#include "strategies/placement/placement.hpp"

namespace rehearse {

std::vector<KeyProblem> imperfection_problems(const Imperfection& imperfection, std::size_t world);
/// `placement` is one that comes out even.
std::vector<KeyProblem> compression_problems(const Scenario& scenario, const Placement& placement);
std::vector<KeyProblem> precision_problems(const Training& training);

}  // namespace rehearse
