// Runs the program as a script would, and looks at what a script sees.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/support/places.hpp"

namespace rehearse {

struct Outcome {
  int exit_code = -1;
  std::string text;  // standard output and error, unless the shell line says otherwise
};

/// Runs a line of shell in which $R is the program.
inline Outcome shell(const std::string& line) {
  const std::string command = "R='" REHEARSE_BINARY "'; { " + line + "; } 2>&1";
  Outcome outcome;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.text.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

inline void expect_outcome(const std::string& line, int exit_code, const std::string& text) {
  const Outcome outcome = shell(line);
  EXPECT_EQ(outcome.exit_code, exit_code) << line << "\n" << outcome.text;
  EXPECT_EQ(outcome.text, text) << line;
}

}  // namespace rehearse
