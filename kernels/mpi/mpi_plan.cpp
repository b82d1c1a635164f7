// Edges turned around; and the proof that sends need not wait for an answer.
#include "kernels/mpi/mpi_plan.hpp"

#include "sim/base/error.hpp"
#include "sim/program/stream_table.hpp"
#include "sim/program/verify.hpp"

namespace rehearse {

namespace {

// In a program whose connections are all posted, an op waits for what is ahead of it on its stream
// to leave only. If that has no race either, an answer to each message would be for nothing.
Program posted(const Program& program) {
  Program out;
  for (Connection way : program.connections()) {
    way.posted = true;
    out.connect(std::move(way));
  }
  out.protocols = program.protocols;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = program[id];
    const std::span<const OpId> after = program.after(id);
    if (op.kind == WorkKind::marker)
      out.add_marker(op.rank, op.stream, op.label, after);
    else if (op.kind == WorkKind::compute)
      out.add_compute(op.rank, op.stream, op.label, program.compute(op), after,
                      program.accesses(op));
    else
      out.add_transfer(op.stream, op.label, program.transfer(op), after);
  }
  return out;
}

}  // namespace

Rank MpiPlan::seen_at(const Program& program, OpId id) const {
  const Program::Op& op = program[id];
  return op.kind == WorkKind::transfer ? program[program.transfer(op).connection].target : op.rank;
}

MpiPlan::MpiPlan(const Program& program) {
  ASSERT(program.folded.empty());
  for (const Connection& way : program.connections())
    if (way.shape != Connection::Shape::point_to_point)
      throw InputError(
          "no switch of this network adds or copies what passes through; choose another algorithm");
  const std::size_t n = program.size();
  next_begin.resize(n + 1);
  stream_next.assign(n, no_op);
  waits.resize(n);
  const StreamTable streams{program};
  std::vector<OpId> last(streams.size(), no_op);
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = program[id];
    ASSERT(op.kind != WorkKind::collective);
    for (const OpId input : program.after(id)) {
      ASSERT(input < id);
      ++next_begin[index(input) + 1];
    }
    waits[i] = static_cast<std::uint32_t>(program.after(id).size());
    if (is_queue(op.stream)) continue;
    OpId& before = last[streams.number(op.rank, op.stream)];
    if (before != no_op) {
      stream_next[index(before)] = id;
      ++waits[i];
    }
    before = id;
  }
  for (std::size_t i = 0; i < n; ++i) next_begin[i + 1] += next_begin[i];
  next_ops.resize(next_begin[n]);
  std::vector<std::uint32_t> filled(next_begin.begin(), next_begin.end() - 1);
  for (std::size_t i = 0; i < n; ++i)
    for (const OpId input : program.after(static_cast<OpId>(i)))
      next_ops[filled[index(input)]++] = static_cast<OpId>(i);
  frees_on_departure = !verify(posted(program));
}

}  // namespace rehearse
