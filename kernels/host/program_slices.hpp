// What an op of a program touches, and on which rank.
#pragma once

#include "sim/program/program.hpp"

namespace rehearse {

/// Calls see(rank, slice), for some slices more than once.
template <class See>
void for_each_slice(const Program& program, const Program::Op& op, See&& see) {
  if (op.kind == WorkKind::compute) {
    for (const Access& access : program.accesses(op)) see(op.rank, access.slice);
  } else if (op.kind == WorkKind::transfer) {
    const Transfer& work = program.transfer(op);
    const Connection& way = program[work.connection];
    using Shape = Connection::Shape;
    if (way.shape != Shape::switch_reduce) see(way.source, work.source());
    if (way.shape != Shape::multicast) see(way.target, work.target());
    for (const Rank other : way.others)
      see(other, way.shape == Shape::multicast ? work.target() : work.source());
  } else if (op.kind == WorkKind::collective) {
    for (const Rank rank : program.collective(op).group) {
      see(rank, program.collective(op).data);
      see(rank, program.collective(op).result);
    }
  }
}

}  // namespace rehearse
