// The command line: adds the subcommands, and is the only place that catches and that sets the
// exit code. 0 done, 1 a check failed, 2 bad input, 3 device trouble, 77 nothing to run on.
#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/told_elsewhere.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/version.hpp"
#include "tools/measure/host_ranks.hpp"
#include "tools/measure/launch.hpp"

namespace rehearse {
namespace {

constexpr int exit_check_failed = 1, exit_bad_input = 2, exit_device = 3, exit_nothing = 77;

constexpr const char* examples = R"(
Examples:
  rehearse predict scenarios/gpt3-175b.toml
      one training step: how long, why, does it fit, what to try next
  rehearse sweep scenarios/gpt3-175b.toml --axis tp=1..8*2 --axis pp=4..32*2
      every combination, with the best marked
  rehearse bench all_reduce --cluster dgx-h100 --nodes 2
      what nccl-tests would print on two DGX H100, with a picture of the curve
  rehearse accuracy scenarios/published/*.csv
      published measurements, predicted row by row: how far off
  rehearse topo show dgx-a100
      the machine as `nvidia-smi topo -m` would show it
  rehearse schedule show ZBH1 --pp 4 --microbatches 8
      who works on what in a pipeline, step by step
  rehearse teach
      a question, your guess, the run, and why
  rehearse validate my_cluster.toml
      every mistake in a file, each on its own line

Exit codes: 0 done, 1 a check failed, 2 bad input, 3 device trouble, 77 nothing to run on.)";

// The innermost subcommand the user has named so far: its options are the ones to suggest.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return *at;
}

std::string command_line_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent ? command_line_of(*parent) + " " + app.get_name() : app.get_name();
}

// Every subcommand, not only those named on the command line: that takes a filter in CLI11 2.1.
std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What is wrong with the command line, in our words where CLI11's would not help.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& at = innermost(app);
  const std::vector<std::string> extras = app.remaining(true);
  if (extras.empty()) return error.what();
  const std::string word = extras.front().substr(0, extras.front().find('='));
  if (word.starts_with("-"))
    return fmt::format("unknown option '{}'{}", word, did_you_mean(word, options_of(at)));
  const std::vector<std::string> commands = subcommands_of(at);
  if (!commands.empty())
    return fmt::format("unknown command '{}'{}", word, did_you_mean(word, commands));
  return fmt::format("unexpected argument '{}'", word);
}

int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version are no mistakes
  std::string problem = usage_problem(app, error);
  for (char& c : problem)
    if (c == '\n') c = ' ';
  while (problem.ends_with(' ') || problem.ends_with('.')) problem.pop_back();
  if (problem == "A subcommand is required") problem = "no command given";
  // A suggestion is help enough.
  if (!problem.ends_with('?'))
    problem += fmt::format("; see '{} --help'", command_line_of(innermost(app)));
  fmt::print(stderr, "error: {}\n", problem);
  return exit_bad_input;
}

int report(std::string_view message, int exit_code) {
  fmt::print(stderr, "error: {}\n", message);
  return exit_code;
}

// mpirun hands on the code of whoever leaves first, and that is to be the process that tells why;
// it then ends the others in their sleep.
void wait_for_the_teller() { std::this_thread::sleep_for(std::chrono::seconds(3)); }

int run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  } catch (const ToldElsewhere& error) {
    if (is_a_process()) wait_for_the_teller();
    return error.exit_code;
  } catch (const InputError& error) {
    if (is_another_process()) wait_for_the_teller();  // processes find the same mistake
    for (const Problem& problem : error.problems()) fmt::print(stderr, "{}\n", to_string(problem));
    return exit_bad_input;
  } catch (const CheckFailed& error) {
    return report(error.what(), exit_check_failed);
  } catch (const DeviceError& error) {
    return report(error.what(), exit_device);
  } catch (const NothingToRunOn& error) {
    return report(error.what(), exit_nothing);
  } catch (const std::bad_alloc&) {
    return report("out of memory: ask for fewer ranks or a smaller program", exit_check_failed);
  } catch (const std::exception& error) {
    if (std::ferror(stdout)) return exit_device;  // fmt throws at the failing write; see finish()
    fmt::print(stderr, "internal error: {} (please report)\n", error.what());
    return exit_check_failed;
  }
}

// A result that did not reach its reader is an error, never silence. A reader who has seen enough
// and closed the pipe (`| head`) is none.
int finish(int exit_code) {
  const bool failed_before = std::ferror(stdout) != 0;
  const int write_error = errno;
  errno = 0;
  const bool failed_now = std::fclose(stdout) != 0;
  if (!failed_before && !failed_now) return exit_code;
  const int cause = failed_now ? errno : write_error;
  if (cause == EPIPE) return exit_code == exit_device ? 0 : exit_code;
  fmt::print(stderr, "error: cannot write to standard output: {}\n", std::strerror(cause));
  return exit_device;
}

// With standard output closed (`>&-`) the next file opened would become it and be overwritten.
// Read-only, so that writing to it still fails and is reported.
void occupy_standard_files() {
  for (const int file : {0, 1, 2})
    if (::fcntl(file, F_GETFD) == -1 && ::open("/dev/null", O_RDONLY) == -1) return;
}

}  // namespace
}  // namespace rehearse

int main(int argc, char** argv) {
  using namespace rehearse;
  occupy_standard_files();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe then fails the write, and finish() is told
  std::signal(SIGXFSZ, SIG_IGN);  // and so does a file that may not grow
  CLI::App app{"Rehearse a training run before you rent the GPUs.", "rehearse"};
  app.set_version_flag("--version", fmt::format("rehearse {}", version()));
  Command program(app);
  program.needs_another();
  add_predict_command(program);
  add_sweep_command(program);
  add_bench_command(program);
  add_run_command(program);
  add_calibrate_command(program);
  add_compare_command(program);
  add_accuracy_command(program);
  add_topo_command(program);
  add_program_command(program);
  add_schedule_command(program);
  add_teach_command(program);
  add_lab_command(program);
  add_validate_command(program);
  add_doctor_command(program);
  app.footer(examples);  // after the commands: each would inherit it
  const int exit_code = finish(run(app, argc, argv));
  tell_launcher(exit_code);
  return exit_code;
}
