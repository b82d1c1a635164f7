// Every lowered collective, run on numbers: the exact result on every rank, in any order that its
// edges allow, and no race. Folded and unfolded answers are the same to the picosecond.
#include <gtest/gtest.h>

#include "sim/program/verify.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/interpreter.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse::collectives_test {
namespace {

std::int64_t element_of(std::size_t rank, std::size_t i) {
  return static_cast<std::int64_t>((rank + 1) * 1'000'003 + i * i * 7 + i);
}

class Numbers {
 public:
  Numbers(const Program& program, const CollectiveShape& shape, std::size_t elements)
      : program_{program}, shape_{shape}, elements_{elements}, machine_(program) {
    for (std::size_t p = 0; p < shape.group.size(); ++p) {
      auto& data = machine_.buffer(shape.group[p], Buffer{0}, elements);
      for (std::size_t i = 0; i < elements; ++i)
        if (holds(p, i)) data[i] = element_of(p, i);
      // All-to-all blocks of a rank are as long as its own, so the result may be a little longer.
      machine_.buffer(shape.group[p], Buffer{1}, elements + shape.group.size());
    }
  }

  void run(Draw& draw) {
    if (draw.once_in(2))
      machine_.run();
    else
      machine_.run(random_order(program_, draw));
  }

  void check() {
    for (std::size_t p = 0; p < shape_.group.size(); ++p)
      for (std::size_t i = 0; i < elements_; ++i) check(p, i);
  }

 private:
  std::size_t n() const { return shape_.group.size(); }
  Slice part(std::size_t p) const {
    return Cut({{}, {}, Bytes{static_cast<std::int64_t>(4 * elements_)}}, n())[p];
  }
  bool in_part(std::size_t p, std::size_t i) const {
    const Slice slice = part(p);
    const auto at = static_cast<std::int64_t>(4 * i);
    return at >= slice.offset.count() && at < slice.offset.count() + slice.size.count();
  }
  std::size_t owner(std::size_t i) const {
    std::size_t p = 0;
    while (!in_part(p, i)) ++p;
    return p;
  }
  bool holds(std::size_t p, std::size_t i) const {
    return shape_.kind != CollectiveKind::all_gather || in_part(p, i);
  }
  std::int64_t sum(std::size_t i) const {
    std::int64_t total = 0;
    for (std::size_t p = 0; p < n(); ++p) total += element_of(p, i);
    return total;
  }

  void check(std::size_t p, std::size_t i) {
    const auto& data = machine_.buffer(shape_.group[p], Buffer{0});
    const auto& result = machine_.buffer(shape_.group[p], Buffer{1});
    switch (shape_.kind) {
      case CollectiveKind::all_reduce:
        ASSERT_EQ(data[i], sum(i)) << "rank " << p << " element " << i;
        break;
      case CollectiveKind::reduce_scatter:
        if (in_part(p, i)) {
          ASSERT_EQ(data[i], sum(i)) << "rank " << p << " element " << i;
        }
        break;
      case CollectiveKind::all_gather:
        ASSERT_EQ(data[i], element_of(owner(i), i)) << "rank " << p << " element " << i;
        break;
      case CollectiveKind::broadcast:
        ASSERT_EQ(data[i], element_of(shape_.root, i)) << "rank " << p << " element " << i;
        break;
      case CollectiveKind::reduce:
        if (p == shape_.root) {
          ASSERT_EQ(data[i], sum(i)) << "rank " << p << " element " << i;
        }
        break;
      case CollectiveKind::send_recv:
        if (n() > 1) {
          ASSERT_EQ(result[i], element_of((p + n() - 1) % n(), i)) << "rank " << p;
        }
        break;
      case CollectiveKind::all_to_all: {
        // Element i lies in block q of rank p's data: it must be in block p of q's result.
        const std::size_t q = owner(i);
        if (q == p) break;
        const Slice block = part(q);
        const auto within = i - static_cast<std::size_t>(block.offset.count() / 4);
        const auto length = static_cast<std::size_t>(block.size.count() / 4);
        ASSERT_EQ(machine_.buffer(shape_.group[q], Buffer{1})[p * length + within],
                  element_of(p, i));
      }
    }
  }

  const Program& program_;
  const CollectiveShape& shape_;
  std::size_t elements_;
  Interpreter machine_;
};

Topology some_machine(Draw& draw) {
  const Cable cable{50.0_GBps, 1_us};
  const std::size_t n = draw.between(1, 17);
  switch (draw.below(6)) {
    case 0:
      return ring(std::max<std::size_t>(n, 2), cable);
    case 1:
      return fully_connected(n, cable);
    case 2:
      return star(n, cable, true);
    case 3:
      return load_cluster("dgx-h100", {draw.between(1, 4), std::nullopt});
    case 4:
      return load_cluster("dgx-h100", {draw.between(1, 5), draw.between(1, 8)});
    default:
      return cluster(star(draw.between(1, 5), cable), draw.between(1, 5),
                     FatTree{.cable = cable, .radix = 8});
  }
}

TEST(Collectives, GiveTheExactResult) {
  Draw draw(20260101);
  std::size_t done = 0;
  for (std::size_t round = 0; round < 120; ++round) {
    const Topology machine = some_machine(draw);
    Routing routing(machine);
    for (const CollectiveKind kind : collective_kinds()) {
      CollectiveShape shape = shape_of(kind, machine, draw.below(4));
      for (std::size_t i = shape.group.size(); i > 1; --i)
        if (draw.once_in(2)) std::swap(shape.group[i - 1], shape.group[draw.below(i)]);
      if (draw.once_in(3)) shape.group.resize(draw.between(1, shape.group.size()));
      shape.root = static_cast<std::uint32_t>(draw.below(shape.group.size()));
      const std::size_t elements = draw.once_in(5) ? draw.below(4) : draw.below(400);
      for (const Algorithm& how : algorithms()) {
        if (how.refusal(shape, machine)) continue;
        SCOPED_TRACE(std::string(how.name) + " " + std::string(to_string(kind)) + " on " +
                     std::to_string(shape.group.size()) + " ranks, " + std::to_string(elements) +
                     " elements, round " + std::to_string(round));
        const CollectiveRehearsal rehearsal(how, shape, routing, Detail::transfers);
        const Program program = rehearsal.program(Bytes{static_cast<std::int64_t>(4 * elements)});
        const auto race = verify(program);
        ASSERT_FALSE(race) << describe(program, *race);
        Numbers numbers(program, shape, elements);
        numbers.run(draw);
        numbers.check();
        if (HasFatalFailure()) return;
        ++done;
      }
    }
  }
  EXPECT_GT(done, 1500u);
}

TEST(Folding, ChangesNoAnswer) {
  const Cable cable{50.0_GBps, 1_us};
  std::vector<std::pair<std::string, Topology>> machines;
  machines.emplace_back("ring", ring(12, cable));
  machines.emplace_back("star", star(16, cable, true));
  machines.emplace_back("star of 6", star(6, cable));
  machines.emplace_back("full mesh", fully_connected(9, cable));
  for (const std::size_t nodes : {1, 2, 3, 4, 8})
    machines.emplace_back("dgx-h100 x " + std::to_string(nodes),
                          load_cluster("dgx-h100", {nodes, std::nullopt}));
  machines.emplace_back(
      "fat tree 4:1",
      cluster(star(4, cable), 8,
              FatTree{.cable = {25.0_GBps, 1_us}, .levels = 2, .radix = 8, .oversubscription = 4}));
  Topology slow = star(8, cable);
  slow.connect_both({slow.add({"late"}), DeviceId{8}, 10.0_GBps, 5_us});
  machines.emplace_back("one slow rank", slow);

  for (const auto& [name, machine] : machines) {
    for (const CollectiveKind kind : collective_kinds()) {
      for (const Algorithm& how : algorithms()) {
        if (how.refusal(shape_of(kind, machine), machine)) continue;
        for (const Bytes size : {8_B, Bytes{4'000}, 1_MiB, Bytes{77'777'776}, 1_GiB})
          ASSERT_EQ(time_of(how.name, kind, machine, size, Detail::folded),
                    time_of(how.name, kind, machine, size, Detail::transfers))
              << how.name << " " << to_string(kind) << " on " << name << ", " << size.count()
              << " B";
      }
    }
  }
}

TEST(Folding, RolesDoNotGrowWithRanks) {
  const auto roles_of = [](const Algorithm& how, CollectiveKind kind, std::size_t nodes) {
    const Topology machine = load_cluster("dgx-h100", {nodes, std::nullopt});
    Routing routing(machine);
    const CollectiveShape shape = shape_of(kind, machine);
    if (how.refusal(shape, machine)) return std::size_t{0};
    return CollectiveRehearsal(how, shape, routing, Detail::folded).roles();
  };
  for (const Algorithm& how : algorithms()) {
    // After a tree between nodes, each node's ranks go on when its own place in the tree is done.
    if (how.name.ends_with("_tree")) continue;
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather})
      EXPECT_LE(roles_of(how, kind, 512), roles_of(how, kind, 128) * 2)
          << how.name << " " << to_string(kind);
  }
}

}  // namespace
}  // namespace rehearse::collectives_test
