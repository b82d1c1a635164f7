// The table.
#include "strategies/collectives/algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"

namespace rehearse {

// One line for each algorithm, in the order in which they are told: it declares the function that
// describes it, which is in the file of its name and in no header, and adds what that says. (Such a
// declaration names a function of the namespace around it, which must have a name itself.)
// clang-format off
static std::vector<Algorithm> all_algorithms() {
  std::vector<Algorithm> all;
  const auto add = [&](const Algorithm& one) { all.push_back(one); };
  extern Algorithm by_ring();  add(by_ring());
  extern Algorithm by_tree();  add(by_tree());
  extern Algorithm by_halving_doubling();  add(by_halving_doubling());
  extern Algorithm by_bruck();  add(by_bruck());
  extern Algorithm by_pat();  add(by_pat());
  extern Algorithm by_hierarchical();  add(by_hierarchical());
  extern Algorithm by_hierarchical_tree();  add(by_hierarchical_tree());
  extern Algorithm by_hierarchical_halving_doubling();  add(by_hierarchical_halving_doubling());
  extern Algorithm by_hierarchical_3();  add(by_hierarchical_3());
  extern Algorithm by_nvls();  add(by_nvls());
  extern Algorithm by_nvls_tree();  add(by_nvls_tree());
  extern Algorithm by_collnet();  add(by_collnet());
  extern Algorithm by_pairwise();  add(by_pairwise());
  return all;
}
// clang-format on

namespace {

constexpr std::array kinds{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                           CollectiveKind::all_gather, CollectiveKind::broadcast,
                           CollectiveKind::reduce,     CollectiveKind::all_to_all,
                           CollectiveKind::send_recv};

}  // namespace

Refusal refuse_all_but(std::initializer_list<CollectiveKind> done, CollectiveKind asked) {
  if (std::find(done.begin(), done.end(), asked) != done.end()) return std::nullopt;
  return fmt::format("it does not do {}", to_string(asked));
}

std::span<const Algorithm> algorithms() {
  static const std::vector<Algorithm> table = all_algorithms();
  return table;
}

const Algorithm& algorithm(std::string_view name) {
  std::vector<std::string> names;
  for (const Algorithm& candidate : algorithms()) {
    if (candidate.name == name) return candidate;
    names.emplace_back(candidate.name);
  }
  throw InputError(fmt::format("unknown algorithm '{}'{}", name, did_you_mean(name, names)));
}

std::span<const CollectiveKind> collective_kinds() { return kinds; }

CollectiveKind collective_kind(std::string_view name) {
  std::vector<std::string> names;
  for (const CollectiveKind kind : kinds) {
    if (to_string(kind) == name) return kind;
    names.emplace_back(to_string(kind));
  }
  throw InputError(fmt::format("unknown collective '{}'{}", name, did_you_mean(name, names)));
}

}  // namespace rehearse
