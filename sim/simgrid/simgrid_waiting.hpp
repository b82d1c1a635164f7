// Who waits for whom, for the SimGrid engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

/// By op: how many must go first, the ops that name it, and the one behind it on its stream.
struct Waiting {
  std::vector<std::uint32_t> pending, begin;
  std::vector<OpId> next, behind;

  explicit Waiting(const Program& program);
  std::span<const OpId> successors(OpId id) const {
    return std::span{next}.subspan(begin[index(id)], begin[index(id) + 1] - begin[index(id)]);
  }
};

}  // namespace rehearse
