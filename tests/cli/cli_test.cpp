// The command line as scripts see it: exit codes, one line for a mistake, and no silence when the
// answer could not be written.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/shell.hpp"

namespace rehearse::cli_test {
namespace {

TEST(CommandLine, TellsItsVersionAndItsCommands) {
  expect_outcome("$R --version", 0, "rehearse 0.1.0\n");
  const Outcome help = shell("$R --help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* const word :
       {"predict", "sweep", "bench", "topo", "program", "validate", "Examples:", "Exit codes"})
    EXPECT_NE(help.text.find(word), std::string::npos) << word;
}

TEST(CommandLine, AMistakeIsOneLineAndExitCode2) {
  expect_outcome("$R", 2, "error: no command given; see 'rehearse --help'\n");
  expect_outcome("$R bnech", 2, "error: unknown command 'bnech'; did you mean 'bench'?\n");
  expect_outcome("$R xyzzy", 2, "error: unknown command 'xyzzy'; see 'rehearse --help'\n");
  expect_outcome("$R bench all_reduce --clutser dgx-h100", 2,
                 "error: unknown option '--clutser'; did you mean '--cluster'?\n");
  expect_outcome("$R topo", 2, "error: no command given; see 'rehearse topo --help'\n");
  expect_outcome("$R topo shwo dgx-h100", 2,
                 "error: unknown command 'shwo'; did you mean 'show'?\n");
}

TEST(CommandLine, WhatCannotBeWrittenIsAnErrorNotSilence) {
  expect_outcome("$R --help >/dev/full", 3,
                 "error: cannot write to standard output: No space left on device\n");
  expect_outcome("$R --help >&-", 3,
                 "error: cannot write to standard output: Bad file descriptor\n");
}

TEST(CommandLine, AReaderWhoHasSeenEnoughIsNoError) {
  // The reader closes before anything is written.
  expect_outcome("{ sleep 0.2; $R --help; echo $? >&2; } | true", 0, "0\n");
}

}  // namespace
}  // namespace rehearse::cli_test
