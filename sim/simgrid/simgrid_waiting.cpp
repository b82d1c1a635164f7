// Counting and listing in two passes over the program.
#include "sim/simgrid/simgrid_waiting.hpp"

#include "sim/program/stream_table.hpp"

namespace rehearse {

Waiting::Waiting(const Program& program)
    : pending(program.size()), begin(program.size() + 1), behind(program.size(), no_op) {
  const StreamTable streams{program};
  std::vector<OpId> last(streams.size(), no_op);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    for (const OpId before : program.after(id)) ++begin[index(before) + 1];
    pending[i] = static_cast<std::uint32_t>(program.after(id).size());
    if (is_queue(program[id].stream)) continue;
    OpId& previous = last[streams.number(program[id].rank, program[id].stream)];
    pending[i] += previous != no_op;
    if (previous != no_op) behind[index(previous)] = id;
    previous = id;
  }
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  next.resize(begin.back());
  std::vector<std::uint32_t> fill(begin.begin(), begin.end() - 1);
  for (std::size_t i = 0; i < program.size(); ++i)
    for (const OpId before : program.after(static_cast<OpId>(i)))
      next[fill[index(before)]++] = static_cast<OpId>(i);
}

}  // namespace rehearse
