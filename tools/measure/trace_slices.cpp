// Reading keeps complete events of kernels; writing gives each rank of each timeline a process.
#include "tools/measure/trace_slices.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "sim/program/stream_table.hpp"
#include "tools/output/trace_json.hpp"

namespace rehearse {

std::vector<TraceSlice> slices_of(const HostStep& step, const Timeline& timeline) {
  std::vector<TraceSlice> slices;
  const Program& program = step.whole.program;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Op& op = program.ops()[i];
    if (op.kind == WorkKind::marker) continue;
    const OpTag& tag = step.whole.tags[i];
    const Timeline::Span& span = timeline.spans[i];
    for (const Rank rank : ranks_of(program, op))
      slices.push_back({index(rank), program.names()[op.label.name],
                        std::string{to_string(tag.phase)}, tag.communicates, span.begin, span.end});
  }
  return slices;
}

namespace {

// gzread also reads what is not compressed.
std::string read_file(const std::string& file) {
  gzFile_s* const in = ::gzopen(file.c_str(), "rb");
  if (in == nullptr) throw InputError(Place{file}, "cannot be read");
  std::string text;
  char buffer[1 << 16];
  int count = 0;
  while ((count = ::gzread(in, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(count));
  ::gzclose(in);
  if (count < 0) throw InputError(Place{file}, "is damaged");
  return text;
}

Time from_microseconds(const nlohmann::json& value) {
  const double us = value.get<double>();
  if (!(us >= 0 && us < 9e12)) throw InputError("a time of a trace is out of range");
  return Time::round(Seconds{us * 1e-6});
}

}  // namespace

std::vector<TraceSlice> read_trace(const std::string& file) {
  const nlohmann::json document = nlohmann::json::parse(read_file(file), nullptr, false);
  if (document.is_discarded() || !document.is_object() || !document.contains("traceEvents"))
    throw InputError(Place{file}, "is no trace: there are no traceEvents");
  std::vector<TraceSlice> slices;
  try {
    for (const nlohmann::json& event : document["traceEvents"]) {
      if (event.value("ph", "") != "X" || event.value("cat", "") != "kernel") continue;
      const nlohmann::json args = event.value("args", nlohmann::json::object());
      const std::string name = event.value("name", "");
      TraceSlice slice{.rank = event.at("pid").get<std::size_t>(),
                       .label = args.value("label", name),
                       .phase = args.value("phase", ""),
                       .communicates = name.starts_with("nccl")};
      slice.begin = from_microseconds(event.at("ts"));
      slice.end = slice.begin + from_microseconds(event.at("dur"));
      slices.push_back(std::move(slice));
    }
  } catch (const nlohmann::json::exception&) {
    throw InputError(Place{file}, "is no trace of ours: an event has no pid, ts or dur");
  }
  if (slices.empty()) throw InputError(Place{file}, "has no kernels");
  return slices;
}

void write_slices(OutputFile& out, const std::vector<NamedSlices>& timelines) {
  constexpr std::size_t processes = 100'000;  // between two timelines
  TraceJson json(out, 0, 1);
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    std::map<std::pair<std::size_t, std::size_t>, Time> ends;  // of process and thread
    std::vector<const TraceSlice*> sorted;
    for (const TraceSlice& slice : timelines[t].slices) sorted.push_back(&slice);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto* a, const auto* b) { return a->begin < b->begin; });
    for (const TraceSlice* slice : sorted) {
      const std::size_t pid = t * processes + slice->rank;
      // Slices of one thread must not overlap: the first thread that is free.
      std::size_t tid = slice->communicates ? 2 : 0;
      while (ends[{pid, tid}] > slice->begin) tid += 4;
      ends[{pid, tid}] = slice->end;
      json.event(
          "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {}, "
          "\"dur\": {}, \"args\": {{\"stream\": {}, \"device\": {}, \"label\": {}, \"phase\": "
          "{}}}}}",
          json_string(slice->communicates ? "nccl:" + slice->label : slice->label), pid, tid,
          microseconds(slice->begin), microseconds(slice->length()), tid, slice->rank,
          json_string(slice->label), json_string(slice->phase));
    }
    for (const auto& [track, end] : ends) {
      json.name_thread(track.first, track.second,
                       track.second % 4 == 2 ? "communication" : "compute");
      if (track.second == 0)
        json.name_process(track.first, fmt::format("{}: rank {}", timelines[t].name,
                                                   track.first - t * processes));
    }
  }
  json.finish();
}

}  // namespace rehearse
