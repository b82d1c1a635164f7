// A timeline as a list of what ran where and when: the common ground of a predicted and a measured
// step, of this run or from a trace file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/measure/host_step.hpp"
#include "tools/output/output_file.hpp"

namespace rehearse {

struct TraceSlice {
  std::size_t rank = 0;
  std::string label;  // "attention_qkv", "all_reduce gradients"
  std::string phase;  // "forward"; empty: not said
  bool communicates = false;
  Time begin, end;
  Time length() const { return end - begin; }
};

/// Ops of the whole step: computes and collectives (on each of their ranks).
std::vector<TraceSlice> slices_of(const HostStep& step, const Timeline& of_whole);

/// The kernels of a Kineto trace that predict or run wrote (.json or .json.gz). Throws InputError.
std::vector<TraceSlice> read_trace(const std::string& file);

/// One trace with several timelines, each a group of processes under its name.
struct NamedSlices {
  std::string name;
  const std::vector<TraceSlice>& slices;
};
void write_slices(OutputFile& out, const std::vector<NamedSlices>& timelines);

}  // namespace rehearse
