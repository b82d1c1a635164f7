// The command line as scripts see it: exit codes, one line for a mistake, and no silence when the
// answer could not be written.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

struct Outcome {
  int exit_code = -1;
  std::string text;  // standard output and error, unless the shell line says otherwise
};

// Runs a line of shell in which $R is the program.
Outcome shell(const std::string& line) {
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

void expect(const std::string& line, int exit_code, const std::string& text) {
  const Outcome outcome = shell(line);
  EXPECT_EQ(outcome.exit_code, exit_code) << line << "\n" << outcome.text;
  EXPECT_EQ(outcome.text, text) << line;
}

TEST(CommandLine, TellsItsVersionAndItsCommands) {
  expect("$R --version", 0, "rehearse 0.1.0\n");
  const Outcome help = shell("$R --help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* const word : {"bench", "topo", "program", "validate", "Examples:", "Exit codes"})
    EXPECT_NE(help.text.find(word), std::string::npos) << word;
}

TEST(CommandLine, AMistakeIsOneLineAndExitCode2) {
  expect("$R", 2, "error: no command given; see 'rehearse --help'\n");
  expect("$R bnech", 2, "error: unknown command 'bnech'; did you mean 'bench'?\n");
  expect("$R xyzzy", 2, "error: unknown command 'xyzzy'; see 'rehearse --help'\n");
  expect("$R bench all_reduce --clutser dgx-h100", 2,
         "error: unknown option '--clutser'; did you mean '--cluster'?\n");
  expect("$R topo", 2, "error: no command given; see 'rehearse topo --help'\n");
  expect("$R topo shwo dgx-h100", 2, "error: unknown command 'shwo'; did you mean 'show'?\n");
}

TEST(CommandLine, WhatCannotBeWrittenIsAnErrorNotSilence) {
  expect("$R --help >/dev/full", 3,
         "error: cannot write to standard output: No space left on device\n");
  expect("$R --help >&-", 3, "error: cannot write to standard output: Bad file descriptor\n");
}

TEST(CommandLine, AReaderWhoHasSeenEnoughIsNoError) {
  // The reader closes before anything is written.
  expect("{ sleep 0.2; $R --help; echo $? >&2; } | true", 0, "0\n");
}

}  // namespace
