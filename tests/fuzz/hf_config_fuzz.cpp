// Any bytes as a model's config.json: read or refused; what is read has layers and adds up.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "sim/workload/hf_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  for (const UnknownKeys unknown : {UnknownKeys::ignored, UnknownKeys::refused}) {
    try {
      const Workload workload = parse_hf_config(text, "fuzz.json", unknown);
      ASSERT(!workload.layers.empty() && workload.seq_length > 0);
      ASSERT(workload.parameters() > 0);
      for (std::size_t i = 0; i < workload.layers.size(); ++i)
        ASSERT(workload.layers[i].like <= i && workload.layers[i].parameters >= 0);
    } catch (const InputError& error) {
      ASSERT(!error.problems().empty());
    }
  }
  return 0;
}
