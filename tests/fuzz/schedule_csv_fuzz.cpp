// Any bytes as a schedule file: read or refused; what is read can run, can be drawn, and comes back
// equal from both formats.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "strategies/schedules/draw_schedule.hpp"
#include "strategies/schedules/schedule_csv.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  Schedule schedule;
  try {
    schedule = parse_schedule_csv(text, "fuzz.csv");
  } catch (const InputError& error) {
    ASSERT(!error.problems().empty());
    return 0;
  }
  ASSERT(!draw_schedule(schedule).empty());
  ASSERT(parse_schedule_csv(write_schedule_csv(schedule), "again.csv") == schedule);
  const Schedule drawing = with_idle_steps(schedule);
  const std::string comms = write_schedule_csv(drawing, CsvFormat::compute_comms);
  ASSERT(with_idle_steps(parse_schedule_csv(comms, "comms.csv")) == drawing);
  return 0;
}
