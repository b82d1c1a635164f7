// What is left of a kernel is counted down whenever its rate changes.
#include "sim/engine/compute_units.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {

std::vector<Rank> ends_of(const Connection& connection) {
  std::vector<Rank> ends{connection.source, connection.target};
  ends.insert(ends.end(), connection.others.begin(), connection.others.end());
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

ComputeUnits::ComputeUnits(const Program& program, const Topology& topology) {
  const std::span<const Connection> all = program.connections();
  if (std::none_of(all.begin(), all.end(), [](const Connection& c) { return c.by_kernels; }))
    return;
  constexpr std::uint32_t several = none - 1;
  std::vector<std::uint32_t> stream;  // of a rank's kernels
  for (const Program::Op& op : program.ops()) {
    if (op.kind != WorkKind::compute) continue;
    if (stream.size() <= index(op.rank)) stream.resize(index(op.rank) + 1, none);
    std::uint32_t& seen = stream[index(op.rank)];
    const auto own = static_cast<std::uint32_t>(index(op.stream));
    seen = seen == none || seen == own ? own : several;
  }
  number_.assign(stream.size(), none);
  for (const Connection& connection : all) {
    if (connection.by_kernels)
      for (const Rank rank : ends_of(connection)) {
        if (index(rank) >= stream.size() || stream[index(rank)] >= several) continue;
        const Device& device = topology[topology.device_of(rank)];
        if (device.accelerator >= topology.accelerators.size()) continue;
        const double share = topology.accelerators[device.accelerator].communication_share;
        const auto slow = whole - std::llround(share * static_cast<double>(whole));
        if (slow >= whole) continue;
        ends_.push_back(rank);
        std::uint32_t& number = number_[index(rank)];
        if (number != none) continue;
        number = static_cast<std::uint32_t>(units_.size());
        units_.push_back({.slow = std::max<std::int64_t>(slow, 1)});
      }
    begin_.push_back(static_cast<std::uint32_t>(ends_.size()));
  }
}

std::span<const Rank> ComputeUnits::slowed(ConnectionId connection) const {
  if (empty()) return {};
  const std::size_t begin = begin_[index(connection)], end = begin_[index(connection) + 1];
  return std::span{ends_}.subspan(begin, end - begin);
}

void ComputeUnits::settle(Unit& unit, Time now) {
  if (unit.op != no_op) unit.left -= rate(unit) * (now - unit.since).ps();
  unit.since = now;
}

Time ComputeUnits::foresee(Unit& unit, Time now) {
  const std::int64_t parts = std::max<std::int64_t>(unit.left, 0);
  unit.end = now + Time::picoseconds((parts + rate(unit) - 1) / rate(unit));
  return unit.end;
}

Time ComputeUnits::begin(Rank rank, OpId op, Time alone, Time now) {
  Unit& unit = units_[unit_of(rank)];
  ASSERT(unit.op == no_op);
  unit.left = whole * alone.ps() - (unit.end == now ? unit.beyond : 0);
  unit.beyond = 0;
  unit.op = op;
  unit.since = now;
  return foresee(unit, now);
}

std::optional<Time> ComputeUnits::take(Rank rank, Time now) {
  Unit& unit = units_[unit_of(rank)];
  settle(unit, now);
  if (++unit.taken > 1) return std::nullopt;
  // After some time at its full rate a unit has whole picoseconds left: what an earlier transfer
  // left over is forgotten, so that kernels beside this one end as if there had been no other.
  // Where one follows the other at once it does not matter which of the two events comes first.
  if (unit.freed != now) {
    unit.beyond = 0;
    unit.left = (std::max<std::int64_t>(unit.left, 0) + whole - 1) / whole * whole;
  }
  if (unit.op == no_op) return std::nullopt;
  return foresee(unit, now);
}

std::optional<Time> ComputeUnits::give_back(Rank rank, Time now) {
  Unit& unit = units_[unit_of(rank)];
  settle(unit, now);
  ASSERT(unit.taken > 0);
  if (--unit.taken > 0) return std::nullopt;
  unit.freed = now;
  if (unit.op == no_op) return std::nullopt;
  return foresee(unit, now);
}

std::optional<OpId> ComputeUnits::end(Rank rank, Time now) {
  Unit& unit = units_[unit_of(rank)];
  if (unit.op == no_op || unit.end != now) return std::nullopt;
  settle(unit, now);
  ASSERT(unit.left <= 0);
  unit.beyond = -unit.left;
  const OpId op = unit.op;
  unit.op = no_op;
  return op;
}

}  // namespace rehearse
