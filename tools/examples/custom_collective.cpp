// Eight GPUs behind one switch: is an all-reduce that sends every part straight to its owner, and
// from there straight to everybody, quicker than a ring?
#include <fmt/format.h>

#include "kernels/host/wrong_numbers.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/explain.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/program/send.hpp"
#include "sim/program/verify.hpp"
#include "strategies/collectives/rehearsal.hpp"
#include "topology/all_ranks.hpp"
#include "topology/generators.hpp"

using namespace rehearse;

Program direct_all_reduce(std::size_t n, Bytes size) {
  Program program;
  const Label label{program.name("direct all-reduce")};
  const Cut parts({Buffer{0}, Bytes{0}, size}, n);  // rank r owns part r
  std::vector<std::vector<OpId>> added(n);          // by part: the last message added to it
  for (std::size_t step = 1; step < n; ++step)      // one after the other, on a common lane
    for (std::size_t rank = 0; rank < n; ++rank) {
      const std::size_t owner = (rank + step) % n;
      const Message message{Rank(rank), Rank(owner), parts[owner], Combine::sum};
      added[owner] = {send(program, label, message, added[owner])};
    }
  for (std::size_t step = 1; step < n; ++step)  // all at once, each on a lane of its own
    for (std::size_t owner = 0; owner < n; ++owner)
      send(program, label,
           {Rank(owner), Rank((owner + step) % n), parts[owner], Combine::overwrite,
            comm_lane(step)},
           added[owner]);
  return program;
}

int main() {
  const Topology machine = star(8, {50.0_GBps, 1_us});
  const CollectiveShape shape{.kind = CollectiveKind::all_reduce, .group = all_ranks(machine)};
  const Roofline cost;
  Routing routing(machine);
  FastSimulator engine(routing, cost);
  CollectiveRehearsal ring(algorithm("ring"), shape, routing, Detail::folded);

  const Program small = direct_all_reduce(8, 64_KiB);  // 16,384 numbers of 4 bytes
  fmt::print("races: {}\n", find_races(small).size());
  fmt::print("wrong numbers: {}\n", wrong_numbers(small, {shape.kind, 8, 0, 16384}));
  for (const Bytes size : {64_KiB, 1_MiB, 16_MiB, 256_MiB})
    fmt::print("{:>6}  direct {:>8}  ring {:>8}\n", to_text(size),
               readable(engine.run(direct_all_reduce(8, size)).makespan),
               readable(ring.run(size, engine).time));
}
