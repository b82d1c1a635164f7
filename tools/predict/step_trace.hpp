// A predicted step as a Kineto trace: a process for each role's rank, its kernels, its collectives
// as NCCL kernels, the actions of its pipeline schedule, and its memory as counters.
#pragma once

#include <string_view>
#include <vector>

#include "sim/engine/paths.hpp"
#include "strategies/predict/predictor.hpp"
#include "tools/output/output_file.hpp"

namespace rehearse {

/// Simulated ranks named by "0-7,12"; all of them for an empty text. Throws InputError for a rank
/// that another one plays.
std::vector<Rank> traced_ranks(std::string_view text, const StepPredictor::Answer& answer);

void write_step_trace(OutputFile& out, const StepPredictor::Answer& answer, const Paths& paths,
                      const Training& training, std::span<const Rank> ranks);

}  // namespace rehearse
