// `rehearse doctor`: the GPUs, driver and NCCL of this machine; what will work, what will not, why.
#include <fmt/format.h>

#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/measure/cuda_driver.hpp"

namespace rehearse {

void add_doctor_command(Command& program) {
  Command command = program.add(
      "doctor",
      "What this machine has to run on: GPUs, driver, toolkit, NCCL; what will work, and why not");
  command.does([] { fmt::print("{}", doctor_text(ask_cuda(), find_tools())); });
}

}  // namespace rehearse
