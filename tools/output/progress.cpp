// One line, written over itself.
#include "tools/output/progress.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

namespace rehearse {

Progress::Progress(bool quiet) : shown_{!quiet && isatty(STDERR_FILENO) == 1} {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(std::string_view line) {
  if (shown_) fmt::print(stderr, "\r{}\033[K", line);
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace rehearse
