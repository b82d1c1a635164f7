// One more way to say a key: a profile is named more often than any other.
#include "tools/cli/calibration_option.hpp"

#include <string>

#include "tools/cli/command.hpp"

namespace rehearse {

void add_calibration_option(Command& command, std::vector<std::string>& sets) {
  command.option(
      "--calibration",
      [&sets](const std::string& profile) { sets.push_back("calibration=" + profile); },
      "A profile that calibrate wrote: what the machine reaches");
}

}  // namespace rehearse
