// What the libraries that ranks talk through cost, and what they reach of links: the constants of
// topology/formats/libraries.toml, fitted to published measurements and carried inside the binary.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.hpp"

namespace rehearse {

struct LibraryFile {
  std::string_view name;
  std::string_view toml;
};

/// The one file. Defined in a source that CMake writes from it.
std::span<const LibraryFile> library_files();

/// A kind of link as libraries see it: "nvlink4", "infiniband".
struct Medium {
  double efficiency = 1;  // of the data sheet's rate
  // NCCL's channels through a switch that adds: of ranks behind one, and of others. Zero: any.
  double switch_channels = 0, far_switch_channels = 0;
  BytesPerSecond most{};  // of one host's way in or out; zero: any. Networks only
  BytesPerSecond pair{};  // of two hosts' ways to each other together; zero: any. Networks only
  Time latency;           // that its software adds to a message, beside its cables; networks only
  bool one_at_a_time = false;  // such a message ends before the next begins: Library has the same
};

struct LibraryTable {
  Library common;
  std::vector<Protocol> protocols;
  std::map<std::string, Medium, std::less<>> media;
  double ll_rate = 1;  // share of what NCCL says its LL carries at most that it does carry
  BytesPerSecond switch_channel{};  // of one channel through a switch that adds, each way
};

/// As the binary has it, or as it was last replaced.
const LibraryTable& library_table();
/// Another one for all machines that are read from now on: for fitting its constants. Throws
/// InputError with every mistake of the text; not for several threads.
void replace_library_table(std::string_view text, const std::string& file);

}  // namespace rehearse
