// `--calibration PROFILE` of the commands that take a scenario: short for a `--set`.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

class Command;

/// Adds to `sets`, which must live as long as the command.
void add_calibration_option(Command& command, std::vector<std::string>& sets);

}  // namespace rehearse
