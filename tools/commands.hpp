// The subcommands, one file each: `rehearse NAME` is tools/NAME.cpp. Each adds itself to the
// application and does its work in a callback; errors are thrown and caught in main only.
#pragma once

namespace CLI {
class App;
}

namespace rehearse {

void add_accuracy_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_lab_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_program_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_sweep_command(CLI::App& app);
void add_teach_command(CLI::App& app);
void add_topo_command(CLI::App& app);
void add_validate_command(CLI::App& app);

}  // namespace rehearse
