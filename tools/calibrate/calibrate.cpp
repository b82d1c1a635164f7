// `rehearse calibrate`: measures on real ranks what the cost model needs, or takes it from logs of
// nccl-tests, and writes a profile.
#include <fmt/format.h>

#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "tools/calibrate/calibrate.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/counts.hpp"
#include "tools/measure/cuda_backend.hpp"
#include "tools/measure/host_calibration.hpp"
#include "tools/output/output_file.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string backend, cluster, output, name, collective = "all_reduce", largest = "16MiB";
  std::vector<std::string> logs, scenarios;
  std::optional<std::int64_t> nodes, gpus_per_node;
  std::int64_t rounds = 5;
  bool quiet = false;
};

Profile profile_of(const Options& options, const Topology& topology) {
  if (!options.logs.empty())
    return calibrate_from_logs({topology, options.logs, options.collective, options.quiet});
  const HostCalibration what{topology, options.scenarios, parse_bytes(options.largest),
                             *counted("--rounds", options.rounds, 1000), options.quiet};
  return options.backend == "cuda" ? need_cuda().calibrate(what) : calibrate_on_host(what);
}

/// The cluster that was named, or else that of the first scenario.
Topology machine_of(const Options& options) {
  if (!options.cluster.empty())
    return load_cluster(options.cluster, {counted("--nodes", options.nodes),
                                          counted("--gpus-per-node", options.gpus_per_node)});
  if (options.scenarios.empty())
    throw InputError("name the machine by --cluster, or a --scenario that runs on it");
  if (options.nodes || options.gpus_per_node)
    throw InputError("--nodes and --gpus-per-node change the machine of --cluster; name one");
  return load_scenario(options.scenarios.front()).topology;
}

void calibrate(const Options& options) {
  if (options.logs.empty() == options.backend.empty())
    throw InputError(
        "calibrate measures with --backend host, or reads logs with --from: one of them");
  if (options.backend == "cuda") need_cuda();
  if (!options.backend.empty() && options.backend != "host" && options.backend != "cuda")
    throw InputError(fmt::format("unknown backend '{}'; there are host and cuda", options.backend));
  const Topology topology = machine_of(options);
  if (topology.rank_count() < 2)
    throw InputError(topology.name + ": a link has two ends, and the machine has one rank");
  Profile profile = profile_of(options, topology);
  if (is_another_process()) return;
  profile.calibration.name = options.name;
  write_output(options.output, profile_text(std::move(profile)));
}

}  // namespace

void add_calibrate_command(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command =
      program.add("calibrate", "Measure a machine and write a profile that predict takes");
  command.option("--backend", &options->backend,
                 "host: measure here, by threads or the processes of mpirun; cuda: the GPUs");
  command.option("--from", &options->logs, "Logs of nccl-tests instead, text or JSON");
  command.option("--cluster", &options->cluster,
                 "The machine: a catalog name or a file; or that of the first --scenario");
  command.option("--nodes", &options->nodes, "Instead of the cluster's own number");
  command.option("--gpus-per-node,-g", &options->gpus_per_node, "Likewise");
  command.option("--scenario", &options->scenarios, "Measure the kernels of these");
  command.option("--largest", &options->largest, "The longest message (16MiB)");
  command.option("--rounds", &options->rounds, "How often each measurement is made (5)");
  command.option("--collective", &options->collective, "What the logs are of (all_reduce)");
  command.option("--name", &options->name, "What the profile is called (measured)");
  command.option("-o,--output", &options->output, "The profile; - is standard output",
                 {.required = true});
  command.flag("--quiet", options->quiet, "No progress line");
  options->name = "measured";
  command.does([options] { calibrate(*options); });
}

}  // namespace rehearse
