// Our engine against SimGrid for every collective, with every algorithm, on every catalog machine:
// the programs that users run, with real routes, channels and protocols.
//
// Should a long pipeline ever differ here, look first whether its flows contend: one that begins a
// little earlier is then shared a little less, its successor begins earlier by twice as much, and a
// picosecond's rounding doubles with each hop, in either engine. Pipelines that are not paced did
// so on dgx-1 and mi300x-8: 4 % apart after 60 pieces, while a picosecond on every link moved our
// own answer by 0.4 %.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/program/program_text.hpp"
#include "strategies/collectives/rehearsal.hpp"
#include "tests/differential/engines.hpp"
#include "topology/formats/catalog.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::catalog_test {
namespace {

std::vector<std::string> machines() {
  std::vector<std::string> names;
  for (const CatalogEntry& entry : catalog()) names.emplace_back(entry.name);
  return names;
}

// Two nodes, so that both kinds of links are crossed; some machines are one node only.
Topology some_nodes(const std::string& name) {
  try {
    return load_cluster(name, {.nodes = 2});
  } catch (const InputError&) {
    return load_cluster(name);
  }
}

// Of large nodes only some ranks take part: SimGrid's time grows faster than the square of flows.
std::vector<Rank> some_ranks(const Topology& topology) {
  constexpr std::size_t most = 16;
  const std::size_t ranks = topology.rank_count(), count = std::min(most, ranks);
  std::vector<Rank> group;
  for (std::size_t i = 0; i < count; ++i) group.push_back(static_cast<Rank>(i * ranks / count));
  return group;
}

class CatalogMachine : public testing::TestWithParam<std::string> {
 protected:
  void compare(const CollectiveRehearsal& rehearsal, CollectiveKind kind, Routing& routing,
               std::uint16_t protocol) {
    for (const Bytes size : {100'004_B, 16_MiB}) {
      const Program program = rehearsal.program(size, protocol);
      const Difference difference = compare_engines(program, routing);
      ++compared_;
      EXPECT_LE(difference.relative, engines_agree_within)
          << difference.where << "\n"
          << to_string(kind) << " of " << size.count() << " B by " << rehearsal.algorithm().name
          << " with protocol " << protocol << " on " << GetParam() << ":\n"
          << (program.size() <= 200 ? to_text(program) : fmt::format("({} ops)", program.size()));
    }
  }
  int compared_ = 0;
};

TEST_P(CatalogMachine, BothEnginesAgreeOnEveryCollective) {
  const Topology topology = some_nodes(GetParam());
  Routing routing{topology};
  const std::size_t protocols = std::max<std::size_t>(1, topology.protocols.size());
  for (const CollectiveKind kind : collective_kinds())
    for (const Algorithm& algorithm : algorithms()) {
      const CollectiveShape shape{.kind = kind, .group = some_ranks(topology), .root = 1};
      if (algorithm.refusal(shape, topology)) continue;
      const CollectiveRehearsal rehearsal{algorithm, shape, routing, Detail::transfers};
      for (std::size_t protocol = 0; protocol < protocols; ++protocol)
        compare(rehearsal, kind, routing, static_cast<std::uint16_t>(protocol));
    }
  EXPECT_GE(compared_, 14) << "every collective has at least one algorithm";
}

INSTANTIATE_TEST_SUITE_P(Catalog, CatalogMachine, testing::ValuesIn(machines()),
                         [](const auto& machine) {
                           std::string name = machine.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace rehearse::catalog_test
