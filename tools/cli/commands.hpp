// The subcommands, one file each: `rehearse NAME` is tools/NAME.cpp. Each adds itself to the
// application and does its work in a callback; errors are thrown and caught in main only.
#pragma once

namespace rehearse {

class Command;

void add_accuracy_command(Command& program);
void add_bench_command(Command& program);
void add_calibrate_command(Command& program);
void add_compare_command(Command& program);
void add_lab_command(Command& program);
void add_doctor_command(Command& program);
void add_predict_command(Command& program);
void add_program_command(Command& program);
void add_run_command(Command& program);
void add_schedule_command(Command& program);
void add_sweep_command(Command& program);
void add_teach_command(Command& program);
void add_topo_command(Command& program);
void add_validate_command(Command& program);

}  // namespace rehearse
