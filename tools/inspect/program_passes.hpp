// The program of a scenario's step as it stands after each pass of its lowering.
#pragma once

#include <span>
#include <string>

#include "sim/program/program.hpp"

namespace rehearse {

/// The passes, in their order: "lower, perturb, flows, expand".
std::string pass_names();

/// Throws InputError for an unknown pass, or a scenario that cannot be lowered.
Program program_after(const std::string& pass, const std::string& scenario,
                      std::span<const std::string> sets);

}  // namespace rehearse
