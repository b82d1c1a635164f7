// Output through zlib, which also passes plain text through; beside the target first, then renamed.
#include "tools/output/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "sim/base/error.hpp"

namespace rehearse {

namespace {

mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_{std::move(path)} {
  try {
    open();
  } catch (...) {
    discard();  // a destructor does not run for what was never constructed
    throw;
  }
}

void OutputFile::open() {
  namespace fs = std::filesystem;
  int descriptor = -1;
  std::error_code ignored;
  const fs::file_status status = fs::status(path_, ignored);
  if (path_ == "-") {
    std::fflush(stdout);  // what was printed before comes first
    descriptor = dup(STDOUT_FILENO);
  } else if (fs::exists(status) && !fs::is_regular_file(status)) {
    // A device or a pipe must not be replaced by a file; a directory fails here, and says so.
    descriptor = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    const fs::path real = fs::canonical(path_, ignored);
    target_ = real.empty() ? path_ : real.string();
    temporary_ = target_ + ".XXXXXX";
    descriptor = mkstemp(temporary_.data());
    if (descriptor < 0) {
      temporary_.clear();
    } else if (fchmod(descriptor, fs::exists(status) ? static_cast<mode_t>(status.permissions())
                                                     : usual_mode()) != 0) {
      const int error = errno;
      close(descriptor);
      fail(error);
    }
  }
  if (descriptor < 0) fail(errno);
  // "T": zlib as a plain buffer. Its gzip header carries no date, so equal runs give equal bytes.
  file_ = gzdopen(descriptor, path_.ends_with(".gz") ? "wb" : "wbT");
  if (!file_) {
    close(descriptor);
    fail(ENOMEM);
  }
  gzbuffer(file_, 1u << 17);
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() {
  if (file_) gzclose(std::exchange(file_, nullptr));
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

void OutputFile::fail(int error) {
  discard();
  throw DeviceError(fmt::format("cannot write '{}': {}", path_, std::strerror(error)));
}

void OutputFile::write(std::string_view text) {
  while (!text.empty()) {
    const auto part = static_cast<unsigned>(std::min<std::size_t>(text.size(), 1u << 30));
    errno = 0;
    if (gzwrite(file_, text.data(), part) != static_cast<int>(part)) fail(errno ? errno : EIO);
    text.remove_prefix(part);
  }
}

void OutputFile::finish() {
  errno = 0;
  if (gzclose(std::exchange(file_, nullptr)) != Z_OK) fail(errno ? errno : EIO);
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void write_output(const std::string& path, std::string_view text) {
  OutputFile file{path};
  file.write(text);
  file.finish();
}

}  // namespace rehearse
