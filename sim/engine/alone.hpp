// How long an op takes when nothing is in its way.
#pragma once

#include <vector>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/paths.hpp"
#include "sim/program/program.hpp"

namespace rehearse {

class Alone {
 public:
  Alone(const Program& program, const Paths& paths, const Topology& topology, const CostModel& cost)
      : program_{program},
        paths_{paths},
        topology_{topology},
        cost_{cost},
        priced_(program.kernel_count()) {}

  Time operator()(const Program::Op& op) const {
    ASSERT(op.kind != WorkKind::collective);  // expanded before a program is simulated
    if (op.kind == WorkKind::transfer) return transfer(program_.transfer(op));
    return op.kind == WorkKind::compute ? compute(op) : Time{};
  }

  /// Its latency, before or after the bytes, which move at the rate of the narrowest link.
  Time transfer(const Transfer& transfer) const {
    const Time latency = paths_.latency(transfer.connection);
    if (transfer.wire == Bytes{0}) return latency;
    const BytesPerSecond rate = paths_.rate_alone(transfer.connection);
    const std::int64_t bursts = paths_.bursts(transfer.connection);
    if (bursts == 1) return latency + Time::round(transfer.wire / rate);
    const Time one = Time::round(Bytes{transfer.wire.count() / bursts} / rate);
    const Time gap = paths_.gap(transfer.connection);
    return latency + Time::picoseconds(bursts * one.ps() + (bursts - 1) * gap.ps());
  }

  /// The part of that during which its stream is already free.
  Time flight(const Program::Op& op) const { return flight_of(program_, paths_, op); }

  Time compute(const Program::Op& op) const {
    static const Accelerator unknown;
    const Device& device = topology_[topology_.device_of(op.rank)];
    const bool known = device.accelerator < topology_.accelerators.size();
    const Accelerator& accelerator = known ? topology_.accelerators[device.accelerator] : unknown;
    Priced& priced = priced_[program_.kernel_number(op)];
    if (priced.on != &accelerator)
      priced = {&accelerator, duration_of(program_.compute(op), accelerator, cost_)};
    return priced.time;
  }

 private:
  struct Priced {
    const Accelerator* on = nullptr;
    Time time;
  };
  const Program& program_;
  const Paths& paths_;
  const Topology& topology_;
  const CostModel& cost_;
  mutable std::vector<Priced> priced_;  // by kernel: the last device it was asked for
};

}  // namespace rehearse
