// By name, unless a file is given.
#include "strategies/plan/step_schedule.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "strategies/placement/placement.hpp"
#include "strategies/schedules/schedule_csv.hpp"
#include "strategies/schedules/schedules.hpp"

namespace rehearse {

Schedule schedule_for(const Parallelism& how, std::size_t microbatches) {
  if (how.schedule_csv.empty())
    return make_schedule(how.schedule, how.pipeline, microbatches, stage_count(how) / how.pipeline);
  Schedule schedule = read_schedule_csv(how.schedule_csv);
  if (schedule.ranks.size() != how.pipeline)
    throw InputError(fmt::format("{}: a schedule of {} pipeline ranks, but pp is {}",
                                 how.schedule_csv, schedule.ranks.size(), how.pipeline));
  if (schedule.microbatches != microbatches)
    throw InputError(fmt::format(
        "{}: a schedule of {} micro-batches, but global_batch_size / (micro_batch_size x dp) is {}",
        how.schedule_csv, schedule.microbatches, microbatches));
  return schedule;
}

bool schedule_takes(const Parallelism& how, std::size_t microbatches) {
  return !refusal(schedule_kind(how.schedule),
                  {how.pipeline, microbatches, stage_count(how) / how.pipeline});
}

}  // namespace rehearse
