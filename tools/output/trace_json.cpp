// The frame of a trace file, and the names of its tracks.
#include "tools/output/trace_json.hpp"

#include <nlohmann/json.hpp>

namespace rehearse {

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string microseconds(Time time) {
  const std::int64_t ps = time.ps();
  if (ps % 1000 != 0) return fmt::format("{}.{:06}", ps / 1'000'000, ps % 1'000'000);
  return fmt::format("{}.{:03}", ps / 1'000'000, ps % 1'000'000 / 1000);
}

TraceJson::TraceJson(OutputFile& out, std::size_t first_rank, std::size_t world) : out_{out} {
  put("{{\"schemaVersion\": 1, \"displayTimeUnit\": \"ns\",\n"
      "\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}}},\n"
      "\"traceEvents\": [",
      first_rank, world);
}

void TraceJson::finish() {
  put("\n]}}\n");
  flush();
}

void TraceJson::flush() {
  out_.write({buffer_.data(), buffer_.size()});
  buffer_.clear();
}

void TraceJson::name_process(std::size_t pid, std::string_view name) {
  event("\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {}, \"args\": {{\"name\": {}}}}}", pid,
        json_string(std::string{name}));
  event(
      "\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": {}, \"args\": "
      "{{\"sort_index\": {}}}}}",
      pid, pid);
}

void TraceJson::name_thread(std::size_t pid, std::size_t tid, std::string_view name) {
  event(
      "\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, \"args\": "
      "{{\"name\": {}}}}}",
      pid, tid, json_string(std::string{name}));
  event(
      "\"ph\": \"M\", \"name\": \"thread_sort_index\", \"pid\": {}, \"tid\": {}, \"args\": "
      "{{\"sort_index\": {}}}}}",
      pid, tid, tid);
}

}  // namespace rehearse
