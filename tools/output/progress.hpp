// What long work shows of itself: a line on a terminal while it goes on, nothing in a pipe.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();  // the line is gone
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool is_shown() const { return shown_; }
  void show(std::string_view line);

 private:
  bool shown_;
};

/// Most memory that this process has held so far.
std::int64_t peak_memory_bytes();

}  // namespace rehearse
