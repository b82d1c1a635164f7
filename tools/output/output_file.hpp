// Where results go: `-` is standard output, a name ending in .gz is compressed, and a file appears
// only when it is complete.
#pragma once

#include <string>
#include <string_view>

struct gzFile_s;  // zlib's, kept out of the headers

namespace rehearse {

class OutputFile {
 public:
  /// Throws DeviceError when nothing can be written there.
  explicit OutputFile(std::string path);
  /// Without finish() nothing stays behind.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view text);
  /// Everything is written, and the file gets its name. Throws DeviceError (a full disk) and leaves
  /// whatever was there before.
  void finish();

 private:
  void open();
  void discard();
  [[noreturn]] void fail(int error);

  std::string path_;       // as the user wrote it, for messages
  std::string target_;     // where it shall be; links followed
  std::string temporary_;  // where it is until finish(); empty: written in place
  gzFile_s* file_ = nullptr;
};

/// All of `text` in one go.
void write_output(const std::string& path, std::string_view text);

}  // namespace rehearse
