// A Program and its Timeline as a Chrome trace in Kineto's layout: opens in Perfetto and in
// chrome://tracing, and HolisticTraceAnalysis reads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/paths.hpp"
#include "sim/program/timeline.hpp"
#include "tools/output/output_file.hpp"

namespace rehearse {

struct TraceOptions {
  std::vector<Rank> ranks;      // which to show; empty: all
  std::size_t links = 32;       // counters for this many of the busiest links they use
  std::string dtype = "Float";  // Kineto's word for the element type
  Bytes element{4};
};

/// Written as it goes along; nothing but the counters is kept in memory.
void write_trace(OutputFile& out, const Program& program, const Timeline& timeline,
                 const Paths& paths, const Topology& topology, const TraceOptions& options = {});

/// "0-7,12" as `--trace-ranks` takes it. Throws InputError for what is not there.
std::vector<Rank> parse_ranks(std::string_view text, std::size_t rank_count);

}  // namespace rehearse
