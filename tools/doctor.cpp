// `rehearse doctor`: the GPUs, driver and NCCL of this machine; what will work, what will not, why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/commands.hpp"
#include "tools/cuda_driver.hpp"

namespace rehearse {

void add_doctor_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "What this machine has to run on: GPUs, driver, toolkit, NCCL; what will work, and why not");
  command->callback([] { fmt::print("{}", doctor_text(ask_cuda(), find_tools())); });
}

}  // namespace rehearse
