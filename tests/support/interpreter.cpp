// The interpreter, and the random orders it is run in.
#include "tests/support/interpreter.hpp"

#include <algorithm>

#include "sim/program/stream_table.hpp"

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
    target[begin + i] = combine == Combine::sum   ? target[begin + i] + values[i]
                        : combine == Combine::max ? std::max(target[begin + i], values[i])
                                                  : values[i];
}

std::vector<std::int64_t> Interpreter::take(const Transfer& transfer) {
  const Connection& connection = program_[transfer.connection];
  if (connection.shape != Connection::Shape::switch_reduce)
    return read(connection.source, transfer.source());
  const bool sums = transfer.combine != Combine::max;
  std::vector<std::int64_t> total(elements(transfer.size), sums ? 0 : INT64_MIN);
  for (const Rank other : connection.others) {
    const std::vector<std::int64_t> values = read(other, transfer.source());
    for (std::size_t i = 0; i < total.size(); ++i)
      total[i] = sums ? total[i] + values[i] : std::max(total[i], values[i]);
  }
  return total;
}

void Interpreter::put(const Transfer& transfer, std::span<const std::int64_t> values) {
  const Connection& connection = program_[transfer.connection];
  if (connection.shape != Connection::Shape::multicast)
    return write(connection.target, transfer.target(), values, transfer.combine);
  for (const Rank other : connection.others)
    write(other, transfer.target(), values, transfer.combine);
}

void Interpreter::run() {
  for (const Program::Op& op : program_.ops())
    if (op.kind == WorkKind::transfer) put(program_.transfer(op), take(program_.transfer(op)));
}

void Interpreter::run(std::span<const OpId> order) {
  std::map<OpId, std::vector<std::int64_t>> in_flight;
  for (const OpId id : order) {
    if (program_[id].kind != WorkKind::transfer) continue;
    const Transfer& transfer = program_.transfer(program_[id]);
    const auto [flying, leaves] = in_flight.try_emplace(id);
    if (leaves) flying->second = take(transfer);
    if (leaves && program_[transfer.connection].posted) continue;
    put(transfer, flying->second);
    in_flight.erase(flying);
  }
  ASSERT(in_flight.empty());
}

namespace {

bool is_posted(const Program& program, const Program::Op& op) {
  return op.kind == WorkKind::transfer && program[program.transfer(op).connection].posted;
}

/// What waits for what. Node i is op i, which ends with it unless it is posted; node n + i is the
/// arrival of a posted one.
struct Waits {
  std::vector<std::vector<std::size_t>> next;
  std::vector<std::size_t> waiting;

  explicit Waits(const Program& program)
      : next(2 * program.size()), waiting(2 * program.size(), 0) {
    const std::size_t n = program.size();
    const StreamTable streams{program};
    std::vector<OpId> last(streams.size(), no_op);
    std::map<std::pair<std::uint32_t, ConnectionId>, std::size_t> last_arrival;
    for (std::size_t i = 0; i < n; ++i) {
      const auto id = static_cast<OpId>(i);
      const Program::Op& op = program[id];
      for (const OpId input : program.after(id))
        edge(index(input) + (is_posted(program, program[input]) ? n : 0), i);
      for (const Rank rank : ranks_of(program, op)) {
        OpId& previous = last[streams.number(rank, op.stream)];
        if (previous != no_op && !is_queue(op.stream)) edge(index(previous), i);
        previous = id;
      }
      if (!is_posted(program, op)) continue;
      edge(i, n + i);
      const auto [before, is_first] = last_arrival.try_emplace(
          {streams.number(op.rank, op.stream), program.transfer(op).connection}, n + i);
      if (!is_first && !is_queue(op.stream)) edge(before->second, n + i);
      before->second = n + i;
    }
  }

  void edge(std::size_t from, std::size_t to) {
    next[from].push_back(to);
    ++waiting[to];
  }
};

}  // namespace

std::vector<OpId> random_order(const Program& program, Draw& draw) {
  const std::size_t n = program.size();
  Waits waits{program};
  std::vector<std::size_t> ready;
  std::vector<OpId> order;
  for (std::size_t i = 0; i < n; ++i)
    if (waits.waiting[i] == 0) ready.push_back(i);
  while (!ready.empty()) {
    std::swap(ready[draw.below(ready.size())], ready.back());
    const std::size_t node = ready.back();
    ready.pop_back();
    order.push_back(static_cast<OpId>(node % n));
    for (const std::size_t to : waits.next[node])
      if (--waits.waiting[to] == 0) ready.push_back(to);
  }
  const auto arrivals = std::count_if(program.ops().begin(), program.ops().end(),
                                      [&](const auto& op) { return is_posted(program, op); });
  ASSERT(order.size() == n + static_cast<std::size_t>(arrivals));
  return order;
}

}  // namespace rehearse
