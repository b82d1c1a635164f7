// `--calibration PROFILE` of the commands that take a scenario: short for a `--set`.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rehearse {

/// Adds to `sets`, which must live as long as the command.
void add_calibration_option(CLI::App& command, std::vector<std::string>& sets);

}  // namespace rehearse
