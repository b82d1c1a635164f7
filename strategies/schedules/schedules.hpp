// The table of pipeline schedules: what each is called, which shapes it can have, and how its order
// is made. To add one, write its file and add a line here.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "strategies/schedules/schedule.hpp"

namespace rehearse {

struct PipelineShape {
  std::size_t ranks = 1, microbatches = 1;
  std::size_t chunks = 1;  // stages on each rank; Megatron's virtual pipeline size
};

struct ScheduleKind {
  std::string_view name;  // PyTorch's, where it has one
  std::string_view summary;
  std::size_t chunks;  // that each rank must hold; 0: as many as are asked for
  /// Why it cannot have this shape, in words; nothing when it can.
  std::optional<std::string> (*refusal)(const PipelineShape&);
  /// Its order, without idle cells.
  Schedule (*make)(const PipelineShape&);
};

std::span<const ScheduleKind> schedules();
/// In any case, and with or without dashes: "zb-h1" is ZBH1. Throws InputError with the nearest
/// name when there is none such.
const ScheduleKind& schedule_kind(std::string_view name);
/// Why this kind cannot have this shape; nothing when it can.
std::optional<std::string> refusal(const ScheduleKind&, const PipelineShape&);
/// The order of the schedule of this name, without idle cells. Throws InputError for an unknown
/// name or a shape that it refuses.
Schedule make_schedule(std::string_view name, std::size_t ranks, std::size_t microbatches,
                       std::size_t chunks_per_rank = 1);

}  // namespace rehearse
