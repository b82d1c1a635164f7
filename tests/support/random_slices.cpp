// Draws programs over tiny buffers, and says plainly what each op touches.
#include "tests/support/random_slices.hpp"

#include <algorithm>

#include "sim/program/kernel_list.hpp"

namespace rehearse {

namespace {

Slice random_slice(Draw& draw, std::int64_t size) {
  return {static_cast<Buffer>(draw.below(2)), Bytes{static_cast<std::int64_t>(draw.below(48))},
          Bytes{size}};
}
Slice random_slice(Draw& draw) {
  return random_slice(draw, draw.of<std::int64_t>({0, 1, 4, 4, 8, 16}));
}

Rank random_rank(Draw& draw, std::size_t ranks) { return static_cast<Rank>(draw.below(ranks)); }

std::vector<Rank> random_group(Draw& draw, std::size_t ranks) {
  std::vector<Rank> group;
  for (std::size_t r = 0; r < ranks; ++r)
    if (draw.once_in(2)) group.push_back(static_cast<Rank>(r));
  if (group.empty()) group.push_back(random_rank(draw, ranks));
  return group;
}

Time random_time(Draw& draw) {
  return Time::picoseconds(static_cast<std::int64_t>(draw.below(1'000'000)));
}

Connection random_connection(Draw& draw, std::size_t ranks) {
  Connection connection;
  connection.channel = static_cast<std::uint16_t>(draw.below(3));
  connection.shape = static_cast<Connection::Shape>(draw.below(3));
  connection.source = random_rank(draw, ranks);
  connection.target = random_rank(draw, ranks);
  connection.posted = draw.once_in(2);
  if (draw.once_in(2)) connection.latency = random_time(draw);
  if (draw.once_in(4)) connection.network = draw.of<double>({1, 0.125});
  if (connection.shape != Connection::Shape::point_to_point)
    connection.others = random_group(draw, ranks);
  return connection;
}

FoldedPath random_fold(Draw& draw, bool posted) {
  FoldedPath path;
  path.latency = random_time(draw);
  path.network = draw.of<double>({0, 1, 1.0 / 3});
  path.stands_for = static_cast<std::uint32_t>(draw.between(1, 9));
  for (std::size_t i = draw.below(3); i > 0; --i)
    path.crossings.push_back(
        {static_cast<LinkId>(draw.below(100)), static_cast<std::uint32_t>(draw.between(1, 4))});
  if (posted || draw.once_in(2)) return path;
  path.bursts = static_cast<std::uint32_t>(draw.between(2, 9));
  path.gap = Time::picoseconds(static_cast<std::int64_t>(draw.below(1'000'000)));
  return path;
}

// Kernels with operands of their own, in place of the accesses drawn before.
std::vector<KernelCall> random_calls(Draw& draw, std::vector<Access>& accesses) {
  accesses.clear();
  std::vector<KernelCall> calls(draw.between(1, 3));
  for (KernelCall& call : calls) {
    call.kernel = static_cast<Kernel>(draw.below(kernel_names().size()));
    call.operands = static_cast<std::uint8_t>(entry_of(call.kernel).operands.size());
    for (std::size_t i = draw.below(9); i > 0; --i)
      call.sizes[draw.below(8)] = static_cast<std::int64_t>(draw.below(1u << 31));
    for (std::size_t i = draw.below(5); i > 0; --i)
      call.numbers[draw.below(4)] = draw.of<double>({1, -2, 1.0 / 3, 1e-30, 0});
    if (draw.once_in(3)) {
      call.narrow = static_cast<Precision>(draw.below(5));
      call.narrow_operands = static_cast<std::uint16_t>(draw.below(1u << call.operands));
    }
    for (std::size_t i = 0; i < call.operands; ++i)
      accesses.push_back({random_slice(draw), writes_operand(call.kernel, i)});
  }
  return calls;
}

void add_random_op(Draw& draw, Program& program, std::size_t ranks) {
  std::vector<OpId> after;
  if (program.size() > 0)
    for (std::size_t i = draw.below(3); i > 0; --i)
      after.push_back(static_cast<OpId>(draw.below(program.size())));
  const Label label{
      program.name(draw.of<std::string>({"a", "b 7", "c \"\\\n", "größe"})),
      draw.once_in(2) ? Label::no_number : static_cast<std::uint32_t>(draw.below(1000))};
  const std::size_t kind = draw.below(10);
  auto stream = static_cast<Stream>(draw.below(4));
  if (kind != 4 && draw.once_in(4)) stream = queue_lane(draw.below(2));
  if (kind == 0) {
    program.add_marker(random_rank(draw, ranks), stream, label, after);
  } else if (kind <= 3) {
    std::vector<Access> accesses;
    for (std::size_t i = draw.below(3); i > 0; --i)
      accesses.push_back({random_slice(draw), draw.once_in(2)});
    const Compute work{Flops{draw.of<double>({0, 1, 1e9, 1.0 / 3})},
                       Bytes{static_cast<std::int64_t>(draw.below(1000))},
                       Time::picoseconds(static_cast<std::int64_t>(draw.below(5000)))};
    std::vector<KernelCall> calls;
    if (draw.once_in(3)) calls = random_calls(draw, accesses);
    program.add_compute(random_rank(draw, ranks), stream, label, work, after, accesses, calls);
  } else if (kind == 4) {
    Collective work{static_cast<CollectiveKind>(draw.below(7)), random_group(draw, ranks),
                    random_slice(draw), random_slice(draw), 0};
    work.root = static_cast<std::uint32_t>(draw.below(work.group.size()));
    if (draw.once_in(4)) work.combine = static_cast<Combine>(draw.below(3));
    if (draw.once_in(4)) work.numbers = static_cast<Precision>(draw.below(5));
    program.add_collective(stream, label, std::move(work), after);
  } else {
    const Slice source = random_slice(draw), target = random_slice(draw, source.size.count());
    Transfer work;
    work.connection = static_cast<ConnectionId>(draw.below(program.connections().size()));
    work.source_buffer = source.buffer, work.source_offset = source.offset;
    work.target_buffer = target.buffer, work.target_offset = target.offset;
    work.combine = draw.once_in(2) ? Combine::sum : static_cast<Combine>(2 * draw.below(2));
    if (draw.once_in(4)) work.numbers = static_cast<Precision>(draw.below(5));
    work.size = source.size;
    work.wire = work.size + Bytes{static_cast<std::int64_t>(draw.below(3))};
    program.add_transfer(stream, label, work, after);
  }
}

}  // namespace

Program random_sliced_program(Draw& draw, bool folded) {
  Program program;
  const std::size_t ranks = draw.between(2, 5);
  for (std::size_t i = draw.below(3); i > 0; --i)
    program.protocols.push_back({"p", random_time(draw), random_time(draw), random_time(draw), 0.5,
                                 BytesPerSecond{draw.of<double>({0, 1e9, 1e10 / 3})}});
  for (std::size_t i = draw.between(1, 6); i > 0; --i) {
    Connection connection = random_connection(draw, ranks);
    if (!program.protocols.empty())
      connection.protocol = static_cast<std::uint16_t>(draw.below(program.protocols.size()));
    if (folded) program.folded.push_back(random_fold(draw, connection.posted));
    program.connect(std::move(connection));
  }
  for (std::size_t i = draw.below(40); i > 0; --i) add_random_op(draw, program, ranks);
  return program;
}

std::vector<Touch> touches_of(const Program& program, OpId id) {
  const Program::Op& op = program[id];
  std::vector<Touch> touches;
  if (op.kind == WorkKind::compute)
    for (const Access& access : program.accesses(op))
      touches.push_back({op.rank, access.slice, access.writes});
  if (op.kind == WorkKind::transfer) {
    const Transfer& work = program.transfer(op);
    const Connection& way = program[work.connection];
    using Shape = Connection::Shape;
    std::vector<Rank> sources{way.source}, targets{way.target};
    if (way.shape == Shape::switch_reduce) sources = way.others;
    if (way.shape == Shape::multicast) targets = way.others;
    for (const Rank rank : sources) touches.push_back({rank, work.source(), false});
    for (const Rank rank : targets) touches.push_back({rank, work.target(), true});
  }
  if (op.kind == WorkKind::collective) {
    using enum CollectiveKind;
    const Collective& work = program.collective(op);
    for (std::size_t i = 0; i < work.group.size(); ++i) {
      const bool is_root = i == work.root;
      const bool apart = work.kind == all_to_all || work.kind == send_recv;
      bool writes = !apart;
      if (work.kind == broadcast) writes = !is_root;
      if (work.kind == reduce) writes = is_root;
      touches.push_back({work.group[i], work.data, writes});
      if (apart) touches.push_back({work.group[i], work.result, true});
    }
  }
  return touches;
}

bool conflict(const Touch& a, const Touch& b) {
  const Slice &s = a.slice, &t = b.slice;
  const bool overlap =
      std::max(s.offset, t.offset) < std::min(s.offset + s.size, t.offset + t.size);
  return (a.writes || b.writes) && a.rank == b.rank && s.buffer == t.buffer && overlap;
}

}  // namespace rehearse
