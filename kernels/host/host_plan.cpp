// Edges turned around, with those of in-order streams among them.
#include "kernels/host/host_plan.hpp"

#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/program/deadlock.hpp"
#include "sim/program/stream_table.hpp"

namespace rehearse {

namespace {

// For each op, its inputs and the op before it on its stream. An op of a queue waits for no other:
// its worker takes one at a time, as they become ready.
template <class See>
void for_each_edge(const Program& program, See&& see) {
  const StreamTable streams{program};
  std::vector<OpId> last(streams.size(), no_op);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    for (const OpId input : program.after(id)) see(input, id);
    if (is_queue(program[id].stream)) continue;
    OpId& before = last[streams.number(program[id].rank, program[id].stream)];
    if (before != no_op) see(before, id);
    before = id;
  }
}

void check_that_it_ends(const Program& program, const HostPlan& plan) {
  std::vector<std::uint32_t> waits = plan.waits;
  std::vector<bool> finished(program.size(), false);
  std::vector<OpId> ready;
  for (std::size_t i = 0; i < program.size(); ++i)
    if (waits[i] == 0) ready.push_back(static_cast<OpId>(i));
  std::size_t done = 0;
  for (; !ready.empty(); ++done) {
    const OpId id = ready.back();
    ready.pop_back();
    finished[index(id)] = true;
    for (const OpId next : plan.next(id))
      if (--waits[index(next)] == 0) ready.push_back(next);
  }
  if (done < program.size()) throw CheckFailed(waiting_cycle(program, finished));
}

}  // namespace

HostPlan::HostPlan(const Program& program) {
  ASSERT(program.folded.empty());
  const std::size_t n = program.size();
  worker_of.resize(n);
  waits.resize(n);
  next_begin.resize(n + 1);
  std::map<std::pair<Rank, bool>, std::uint32_t> numbers;
  for (std::size_t i = 0; i < n; ++i) {
    const Program::Op& op = program.ops()[i];
    ASSERT(op.kind != WorkKind::collective);
    const bool computes = op.stream == Stream::compute;
    const auto made = numbers.try_emplace({op.rank, computes}, numbers.size());
    if (made.second) workers.push_back({op.rank, computes, 0});
    worker_of[i] = made.first->second;
    ++workers[worker_of[i]].ops;
  }
  for_each_edge(program, [&](OpId from, OpId to) {
    ++next_begin[index(from) + 1];
    ++waits[index(to)];
  });
  for (std::size_t i = 0; i < n; ++i) next_begin[i + 1] += next_begin[i];
  next_ops.resize(next_begin[n]);
  std::vector<std::uint32_t> filled(next_begin.begin(), next_begin.end() - 1);
  for_each_edge(program, [&](OpId from, OpId to) { next_ops[filled[index(from)]++] = to; });
  check_that_it_ends(program, *this);
}

}  // namespace rehearse
