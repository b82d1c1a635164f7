// Any bytes as a calibration profile: read or refused, and what is read comes back equal and can be
// applied.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "sim/scenario/calibration.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  try {
    const Calibration calibration = parse_calibration(text, "fuzz.toml");
    ASSERT(parse_calibration(to_toml(calibration), "again.toml") == calibration);
    Topology topology;
    topology.accelerators = {{.name = "A100 SXM 80GB", .peaks = {{"bf16", FlopsPerSecond{1e14}}}}};
    apply(calibration, topology);
  } catch (const InputError& error) {
    ASSERT(!error.problems().empty());
  }
  return 0;
}
