// Any bytes as a table of measurements: read or refused, with a place for every mistake.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "tools/accuracy/measured_rows.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  try {
    const MeasuredFile file = parse_measured(text, "fuzz.csv");
    for (const MeasuredRow& row : file.rows) {
      ASSERT(!row.case_id.empty() && row.line > 1);
      ASSERT(hardware_of(row).gpus_per_node > 0 && hardware_of(row).nodes > 0);
    }
  } catch (const InputError& error) {
    ASSERT(!error.problems().empty());
    for (const Problem& problem : error.problems()) ASSERT(problem.place.file == "fuzz.csv");
  }
  return 0;
}
