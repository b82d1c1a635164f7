// The interpreter, and the random orders it is run in.
#include "tests/support/interpreter.hpp"

#include <algorithm>

#include "sim/stream_table.hpp"

namespace rehearse {

std::size_t Interpreter::elements(Bytes bytes) const {
  ASSERT(bytes >= Bytes{0} && bytes.count() % element_.count() == 0);
  return static_cast<std::size_t>(bytes.count() / element_.count());
}

std::vector<std::int64_t>& Interpreter::buffer(Rank rank, Buffer buffer, std::size_t elements) {
  std::vector<std::int64_t>& values = buffers_[{rank, buffer}];
  if (values.size() < elements) values.resize(elements);
  return values;
}

std::vector<std::int64_t> Interpreter::read(Rank rank, const Slice& slice) {
  const std::size_t begin = elements(slice.offset), end = elements(slice.offset + slice.size);
  const std::vector<std::int64_t>& values = buffer(rank, slice.buffer, end);
  const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
  return {at(begin), at(end)};
}

void Interpreter::write(Rank rank, const Slice& slice, std::span<const std::int64_t> values,
                        Combine combine) {
  const std::size_t begin = elements(slice.offset);
  std::vector<std::int64_t>& target = buffer(rank, slice.buffer, begin + values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    target[begin + i] = combine == Combine::sum ? target[begin + i] + values[i] : values[i];
}

void Interpreter::run(const Transfer& transfer) {
  const Connection& connection = program_[transfer.connection];
  switch (connection.shape) {
    case Connection::Shape::point_to_point:
      return write(connection.target, transfer.target(), read(connection.source, transfer.source()),
                   transfer.combine);
    case Connection::Shape::multicast: {
      const std::vector<std::int64_t> values = read(connection.source, transfer.source());
      for (const Rank other : connection.others)
        write(other, transfer.target(), values, transfer.combine);
      return;
    }
    case Connection::Shape::switch_reduce: {
      std::vector<std::int64_t> sum(elements(transfer.size), 0);
      for (const Rank other : connection.others) {
        const std::vector<std::int64_t> values = read(other, transfer.source());
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
      }
      return write(connection.target, transfer.target(), sum, transfer.combine);
    }
  }
}

void Interpreter::run() {
  for (const Program::Op& op : program_.ops())
    if (op.kind == WorkKind::transfer) run(program_.transfer(op));
}

void Interpreter::run(std::span<const OpId> order) {
  ASSERT(order.size() == program_.size());
  for (const OpId id : order)
    if (program_[id].kind == WorkKind::transfer) run(program_.transfer(program_[id]));
}

std::vector<OpId> random_order(const Program& program, Draw& draw) {
  const StreamTable streams{program};
  std::vector<OpId> last(streams.size(), no_op);
  std::vector<std::vector<OpId>> next(program.size());
  std::vector<std::size_t> waiting(program.size(), 0);
  const auto edge = [&](OpId from, OpId to) {
    next[index(from)].push_back(to);
    ++waiting[index(to)];
  };
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    for (const OpId input : program.after(id)) edge(input, id);
    for (const Rank rank : ranks_of(program, program[id])) {
      OpId& previous = last[streams.number(rank, program[id].stream)];
      if (previous != no_op) edge(previous, id);
      previous = id;
    }
  }
  std::vector<OpId> ready, order;
  for (std::size_t i = 0; i < program.size(); ++i)
    if (waiting[i] == 0) ready.push_back(static_cast<OpId>(i));
  while (!ready.empty()) {
    std::swap(ready[draw.below(ready.size())], ready.back());
    const OpId id = ready.back();
    ready.pop_back();
    order.push_back(id);
    for (const OpId to : next[index(id)])
      if (--waiting[index(to)] == 0) ready.push_back(to);
  }
  ASSERT(order.size() == program.size());
  return order;
}

}  // namespace rehearse
