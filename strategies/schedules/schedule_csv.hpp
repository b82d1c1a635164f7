// Schedules in PyTorch's CSV: a row for each rank, a cell for each action, empty for an idle step.
//
//   0F0,0F1,,,,0B0,,0B1,         `_PipelineScheduleRuntime._load_csv` reads what is written here,
//   and ,1F0,1F1,1B0,,1B1,,          torchtitan's pipeline_parallel_schedule_csv goes there
#pragma once

#include <string>
#include <string_view>

#include "strategies/schedules/schedule.hpp"

namespace rehearse {

/// PyTorch's two: compute alone, or with every send, receive, gather and reduction in its place.
enum class CsvFormat : std::uint8_t { compute_only, compute_comms };

/// Either format. Communication is checked and left out: the lowering adds its own. Throws
/// InputError with every mistake, at its line and column.
Schedule parse_schedule_csv(std::string_view text, const std::string& file);
Schedule read_schedule_csv(const std::string& file);

/// The cells as they are; with communication, as PyTorch 2.15 lowers them, without idle cells.
std::string write_schedule_csv(const Schedule&, CsvFormat = CsvFormat::compute_only);

}  // namespace rehearse
