// How long does a collective take on a cluster, and by which algorithm?
//   bench all_reduce dgx-h100 2
#include <fmt/format.h>

#include "sim/base/quantity_text.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/explain.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "strategies/collectives/choose.hpp"
#include "topology/all_ranks.hpp"
#include "topology/formats/cluster.hpp"

using namespace rehearse;

int main(int argc, char** argv) try {
  if (argc != 4) throw InputError("usage: bench COLLECTIVE CLUSTER NODES");
  const Topology machine = load_cluster(argv[2], {.nodes = std::stoul(argv[3])});
  const Roofline cost;
  Routing routing(machine);
  FastSimulator engine(routing, cost);
  CollectiveChooser chooser({.kind = collective_kind(argv[1]), .group = all_ranks(machine)},
                            routing, {});

  for (const Bytes size : {64_KiB, 1_MiB, 16_MiB, 256_MiB, 4_GiB}) {
    const Candidate best = chooser.best(size, engine);
    fmt::print("{:>8} {:>10} {:>10}  {}/{}\n", to_text(size), readable(best.result.time),
               readable(size / best.result.time.seconds()), best.algorithm,
               chooser.protocol_name(best.protocol));
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
