// Trouble that another process of the run has told the user of: this one ends without a line.
#pragma once

#include <stdexcept>

namespace rehearse {

class ToldElsewhere : public std::runtime_error {
 public:
  explicit ToldElsewhere(int code = 3)
      : std::runtime_error("told by another process"), exit_code{code} {}
  int exit_code;
};

}  // namespace rehearse
