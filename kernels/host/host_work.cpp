// Transfers by shape, computes by their calls.
#include "kernels/host/host_work.hpp"

#include "kernels/host/combine.hpp"
#include "kernels/host/run_call.hpp"

namespace rehearse {

namespace {

// The switch adds up its sources in their order (or keeps the largest), then hands that over. A
// target that is also a source would read what it has just overwritten, so it is made beside it.
void run_switch_reduce(const Transfer& work, const Connection& way, HostMemory& memory) {
  if (way.others.empty()) return;
  const std::span<std::byte> first = memory.at(way.others.front(), work.source());
  std::vector<std::byte> sum(first.begin(), first.end());
  for (const Rank other : std::span{way.others}.subspan(1))
    combine(combine_in_switch(work), work.numbers, memory.at(other, work.source()), sum);
  combine(work.combine, work.numbers, sum, memory.at(way.target, work.target()));
}

}  // namespace

void run_transfer(const Program& program, const Transfer& work, HostMemory& memory) {
  const Connection& way = program[work.connection];
  if (way.shape == Connection::Shape::switch_reduce) return run_switch_reduce(work, way, memory);
  const std::span<const std::byte> source = memory.at(way.source, work.source());
  if (way.shape == Connection::Shape::point_to_point)
    return combine(work.combine, work.numbers, source, memory.at(way.target, work.target()));
  for (const Rank other : way.others)
    combine(work.combine, work.numbers, source, memory.at(other, work.target()));
}

void run_compute(const Program& program, const Program::Op& op, HostMemory& memory) {
  const std::span<const KernelCall> calls = program.calls(op);
  if (calls.empty()) return;
  std::vector<std::span<std::byte>> operands;
  for (const Access& access : program.accesses(op))
    operands.push_back(memory.at(op.rank, access.slice));
  run_calls(calls, operands);
}

}  // namespace rehearse
