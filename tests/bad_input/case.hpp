// One broken input file, and the exact text its user gets for it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rehearse::bad_input {

struct Case {
  std::string name;                                        // says what is wrong
  std::string file;                                        // what the user passes
  std::vector<std::pair<std::string, std::string>> files;  // written first: name and content
  std::string message;                                     // all lines, no newline at the end
};

}  // namespace rehearse::bad_input
