// Mistakes in a `rehearse bench` command: exit code 2 and exactly this one line, no table before.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/shell.hpp"

namespace rehearse::bench_mistakes_test {
namespace {

struct Mistake {
  std::string arguments, message;
};

const std::vector<Mistake> mistakes{
    {"all_reduc --cluster dgx-h100",
     "error: unknown collective 'all_reduc'; did you mean 'all_reduce'?"},
    {"all_reduce --cluster dgx-h10",
     "error: unknown cluster 'dgx-h10'; did you mean 'dgx-h100'? (`rehearse topo show` lists the "
     "catalog)"},
    {"all_reduce --cluster dgx-h100 --algorithm rign",
     "error: unknown algorithm 'rign'; did you mean 'ring'?"},
    {"all_reduce --cluster dgx-h100 --algorithm pairwise",
     "error: algorithm 'pairwise' cannot do this all_reduce: it does not do all_reduce"},
    {"all_reduce --cluster dgx-h100 --algorithm hierarchical",
     "error: algorithm 'hierarchical' cannot do this all_reduce: all ranks are in one node"},
    {"all_reduce --cluster dgx-h100 --protocol lll",
     "error: the machine has no protocol 'lll'; did you mean 'll'?; it has ll, ll128, simple"},
    {"all_reduce --cluster dgx-h100 -b 8x", "error: \"8x\" is not a size; write e.g. \"128M\""},
    {"all_reduce --cluster dgx-h100 -b -8", "error: \"-8\" is negative"},
    {"all_reduce --cluster dgx-h100 -e 99999999999999999999G",
     "error: \"99999999999999999999G\" is out of range"},
    {"all_reduce --cluster dgx-h100 -e 1025T", "error: -e 1025T is more than 1024T"},
    {"all_reduce --cluster dgx-h100 -b 16 -e 8", "error: -e 8 is smaller than -b 16"},
    {"all_reduce --cluster dgx-h100 -f 1", "error: -f 1 must be a number above 1"},
    {"all_reduce --cluster dgx-h100 -f nan", "error: -f nan must be a number above 1"},
    {"all_reduce --cluster dgx-h100 -f inf", "error: -f inf must be a number above 1"},
    {"all_reduce --cluster dgx-h100 -i 0", "error: -i must be greater than 0"},
    {"all_reduce --cluster dgx-h100 -i 8", "error: more than 10000 sizes between -b and -e"},
    {"all_reduce --cluster dgx-h100 -d flot",
     "error: unknown data type 'flot'; did you mean 'float'?"},
    {"all_reduce --cluster dgx-h100 --engine fats",
     "error: unknown engine 'fats'; did you mean 'fast'?"},
    {"all_reduce --cluster dgx-h100 --detail fold",
     "error: --detail fold is neither 'folded' nor 'transfers'"},
    {"broadcast --cluster dgx-h100 --root 8", "error: --root 8 is not one of the 8 ranks"},
    {"broadcast --cluster dgx-h100 --root -1", "error: --root -1 is not one of the 8 ranks"},
    {"all_reduce --cluster dgx-h100 --nodes 1000000000000",
     "catalog/dgx-h100.toml: error: 1000000000000 nodes x 25 devices are more than the 1048576 "
     "devices supported"},
    {"all_reduce --cluster dgx-h100 --nodes 0", "error: --nodes 0 must be at least 1"},
    {"all_reduce --cluster dgx-h100 --nodes -1", "error: --nodes -1 must be at least 1"},
    {"all_reduce --cluster dgx-h100 --gpus-per-node 9",
     "catalog/dgx-h100.toml:35:8: error: the node has 8 GPUs; 9 were asked for"},
    {"all_reduce --cluster dgx-h100 --channels 1000000",
     "error: --channels 1000000 must be at most 64"},
    {"all_reduce --clutser dgx-h100",
     "error: unknown option '--clutser'; did you mean '--cluster'?"},
    {"all_reduce", "error: --cluster is required; see 'rehearse bench --help'"},
    {"--cluster dgx-h100", "error: collective is required; see 'rehearse bench --help'"},
    {"all_reduce --cluster /", "/: error: is a directory, not a file"},
    {"all_reduce --cluster no/such.toml", "error: no such file: 'no/such.toml'"},
    {"all_reduce --cluster dgx-h100 more",
     "error: unexpected argument 'more'; see 'rehearse bench --help'"},
    {"all_reduce --cluster dgx-h100 -e 8 --json - --trace -",
     "error: standard output (-) is for one of --json, --csv, --trace, --dump-program, "
     "--report"},
};

TEST(BenchMistakes, AreOneLineAndExitCode2) {
  for (const Mistake& mistake : mistakes)
    expect_outcome("$R bench " + mistake.arguments, 2, mistake.message + "\n");
}

TEST(BenchMistakes, AnOutputThatCannotBeWrittenIsDeviceTrouble) {
  for (const std::string option : {"--json", "--csv", "--trace", "--dump-program"}) {
    const std::string line = "$R bench all_reduce --cluster dgx-1 -b 8 -e 8 " + option;
    expect_outcome(line + " /no/such/folder/x 2>&1 >/dev/null", 3,
                   "error: cannot write '/no/such/folder/x': No such file or directory\n");
    expect_outcome(line + " / 2>&1 >/dev/null", 3, "error: cannot write '/': Is a directory\n");
  }
  expect_outcome("$R bench all_reduce --cluster dgx-1 -b 8 -e 8 2>&1 >/dev/full", 3,
                 "error: cannot write to standard output: No space left on device\n");
}

}  // namespace
}  // namespace rehearse::bench_mistakes_test
