// What every trace writer needs: events written as they come, exact times, safe strings.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>

#include "sim/base/units.hpp"
#include "tools/output/output_file.hpp"

namespace rehearse {

/// With quotes; bytes that are no UTF-8 are replaced, since a label may come from a user's file.
std::string json_string(const std::string& text);
/// Microseconds with as many decimals as the picoseconds ask for, never through a double.
std::string microseconds(Time time);

/// A Chrome trace in Kineto's layout. A space follows every colon: HolisticTraceAnalysis finds the
/// rank by "rank":\s+(\d+).
class TraceJson {
 public:
  TraceJson(OutputFile& out, std::size_t first_rank, std::size_t world);
  /// Ends the file; the OutputFile is the caller's to finish.
  void finish();

  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    constexpr std::size_t enough = 1u << 16;
    if (buffer_.size() > enough) flush();
  }
  /// `format` is what stands between the braces; the last one too, unless more is put after it.
  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    put("{}", is_first_event_ ? "\n{" : ",\n{");
    is_first_event_ = false;
    put(format, std::forward<Args>(args)...);
  }

  void name_process(std::size_t pid, std::string_view name);
  void name_thread(std::size_t pid, std::size_t tid, std::string_view name);

 private:
  void flush();

  OutputFile& out_;
  fmt::memory_buffer buffer_;
  bool is_first_event_ = true;
};

}  // namespace rehearse
