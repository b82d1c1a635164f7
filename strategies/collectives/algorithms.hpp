// What an algorithm says of itself: what it is called, which collectives it can do on which
// machine, and how it becomes a pattern and its transfers. To add one, write its file and add its
// line to the table in algorithms.cpp.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/collectives/emission.hpp"
#include "topology/routing.hpp"

namespace rehearse {

/// What is asked for, but for its size: the same pattern serves every size.
struct CollectiveShape {
  CollectiveKind kind{};
  std::vector<Rank> group;
  std::uint32_t root = 0;
  std::size_t channels = 0;  // 0: as many as use the machine
};

struct CollectiveBuffers {
  Slice data, result;
  Buffer scratch{2};  // and the ones after it
};

/// A pattern, and the way to emit its transfers once the fold is known.
struct CollectivePlan {
  /// What the pipeline of a tree or chain needs to choose its pieces.
  struct Pipeline {
    std::size_t depth = 0;   // hops that a piece travels; 0: nothing is pipelined
    std::size_t shares = 1;  // ways that split the data
    std::size_t chunks = 1;  // of the library's shortest, of which a piece is made (Library::piece)
    bool is_fixed = false;   // else NCCL makes pieces longer where the data are many
  };

  Pattern pattern;
  Pipeline pipeline;
  bool paced = false;  // its hops get equal shares of their links (pace.hpp)
  /// How many rounds alike a collective in `pieces` has: ring steps, or pieces of a pipeline. 0:
  /// its steps differ from each other.
  std::function<std::size_t(std::size_t pieces)> rounds = [](std::size_t) {
    return std::size_t{0};
  };
  std::size_t transfers = 1;  // of one hop at most, where there are no rounds
  std::function<void(Emission&, const CollectiveBuffers&, std::size_t pieces, std::size_t rounds)>
      emit;
  /// Sizes with the same key take the same time: the longest chunk that travels.
  std::function<std::int64_t(Bytes)> key = [](Bytes size) { return size.count(); };
};

/// Why not, in words; nothing where there is no reason.
using Refusal = std::optional<std::string>;
Refusal refuse_all_but(std::initializer_list<CollectiveKind> done, CollectiveKind asked);

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  Refusal (*refusal)(const CollectiveShape&, const Topology&);
  CollectivePlan (*plan)(const CollectiveShape&, Routing&);  // of what it does not refuse
  bool simple_only = false;  // it speaks the protocol "simple" only, as NCCL's NVLS and CollNet do
  /// Why `auto` passes it by where a library chooses; empty: the library has none such.
  std::string_view passed_by = "";
};

std::span<const Algorithm> algorithms();
/// Throws InputError with the nearest name when there is none such.
const Algorithm& algorithm(std::string_view name);
std::span<const CollectiveKind> collective_kinds();
/// "all_reduce" → its kind; throws InputError likewise.
CollectiveKind collective_kind(std::string_view name);

}  // namespace rehearse
