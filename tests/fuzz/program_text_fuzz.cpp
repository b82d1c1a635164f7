// Any bytes as a program file: read or refused, and what is read comes back equal and can be
// judged.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/program/program_text.hpp"
#include "sim/program/verify.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  try {
    const Program program = parse_program(text, "fuzz");
    ASSERT(parse_program(to_text(program), "again") == program);
    structural_problems(program, {8, 8});
    find_races(program);
  } catch (const InputError&) {
  } catch (const CheckFailed&) {
  }
  return 0;
}
