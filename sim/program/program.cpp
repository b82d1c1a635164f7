// Building and reading a Program. Works of one kind lie side by side, so that a ring of 1,024 ranks
// (two million transfers) is a quarter of a gigabyte and streams through the caches in order.
#include "sim/program/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/bits.hpp"

namespace rehearse {

Cut::Cut(Slice whole, std::size_t parts, Bytes unit)
    : whole_{whole}, parts_{static_cast<std::int64_t>(parts)}, unit_{unit.count()} {
  ASSERT(parts_ > 0 && unit_ > 0 && whole.size >= Bytes{0});
  each_ = whole.size.count() / unit_ / parts_;
  larger_ = whole.size.count() / unit_ % parts_;
}

Bytes Cut::longest() const { return std::max((*this)[0].size, (*this)[size() - 1].size); }

std::uint32_t Program::name(std::string_view text) {
  const auto found = std::find(names_.begin(), names_.end(), text);
  if (found != names_.end()) return static_cast<std::uint32_t>(found - names_.begin());
  names_.emplace_back(text);
  return static_cast<std::uint32_t>(names_.size() - 1);
}

ConnectionId Program::connect(Connection connection) {
  connections_.push_back(std::move(connection));
  return static_cast<ConnectionId>(connections_.size() - 1);
}

OpId Program::add(Op op, std::span<const OpId> after) {
  const auto id = static_cast<OpId>(ops_.size());
  ASSERT(id < no_op);
  for (const OpId dependency : after) ASSERT(dependency < id);
  ops_.push_back(op);
  has_queues_ = has_queues_ || is_queue(op.stream);
  after_.insert(after_.end(), after.begin(), after.end());
  after_begin_.push_back(static_cast<std::uint32_t>(after_.size()));
  return id;
}

OpId Program::add_marker(Rank rank, Stream stream, Label label, std::span<const OpId> after) {
  return add({rank, stream, WorkKind::marker, 0, label}, after);
}

OpId Program::add_compute(Rank rank, Stream stream, Label label, const Compute& work,
                          std::span<const OpId> after, std::span<const Access> accesses,
                          std::span<const KernelCall> calls) {
  const auto begin = static_cast<std::uint32_t>(accesses_.size());
  accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
  computes_.push_back({kernel(work), begin, static_cast<std::uint32_t>(accesses_.size())});
  const auto which = static_cast<std::uint32_t>(computes_.size() - 1);
  set_calls(which, calls);
  return add({rank, stream, WorkKind::compute, which, label}, after);
}

std::uint32_t Program::kernel(const Compute& work) {
  std::uint64_t hash = bits_of(work.flops.count());
  for (const std::int64_t part : {work.traffic.count(), work.fixed.ps(), work.gemm.n})
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15;
  std::uint32_t& recent = recent_kernels_[hash >> 56];
  if (recent < kernels_.size() && kernels_[recent] == work) return recent;
  kernels_.push_back(work);
  return recent = static_cast<std::uint32_t>(kernels_.size() - 1);
}

OpId Program::add_transfer(Stream stream, Label label, const Transfer& work,
                           std::span<const OpId> after) {
  const Connection& connection = connections_[index(work.connection)];
  const Rank rank =
      connection.shape == Connection::Shape::switch_reduce ? connection.target : connection.source;
  ASSERT(work.size >= Bytes{0} && work.wire >= work.size);
  transfers_.push_back(work);
  const auto which = static_cast<std::uint32_t>(transfers_.size() - 1);
  return add({rank, stream, WorkKind::transfer, which, label}, after);
}

OpId Program::add_collective(Stream stream, Label label, const Collective& work,
                             std::span<const OpId> after) {
  ASSERT(!work.group.empty() && !is_queue(stream));
  const std::uint32_t which = collective_number(work);
  return add({work.group.front(), stream, WorkKind::collective, which, label}, after);
}

std::uint32_t Program::collective_number(const Collective& work) {
  std::uint64_t hash = index(work.group.front());
  for (const auto part : {work.data.size.count(), work.data.offset.count(),
                          static_cast<std::int64_t>(index(work.data.buffer))})
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15;
  std::uint32_t& recent = recent_collectives_[hash >> 56];
  if (recent < collectives_.size() && collectives_[recent] == work) return recent;
  collectives_.push_back(work);
  return recent = static_cast<std::uint32_t>(collectives_.size() - 1);
}

void Program::change_collective(OpId id, const Collective& work) {
  ops_[index(id)].work = collective_number(work);
}

std::span<const Access> Program::accesses(const Op& op) const {
  ASSERT(op.kind == WorkKind::compute);
  const ComputeWork& work = computes_[op.work];
  return std::span{accesses_}.subspan(work.accesses_begin, work.accesses_end - work.accesses_begin);
}

std::span<const KernelCall> Program::calls(const Op& op) const {
  ASSERT(op.kind == WorkKind::compute);
  if (op.work >= call_ranges_.size()) return {};
  const CallRange& range = call_ranges_[op.work];
  return std::span{calls_}.subspan(range.begin, range.end - range.begin);
}

void Program::set_calls(std::uint32_t work, std::span<const KernelCall> calls) {
  if (calls.empty()) return;
  ASSERT(call_ranges_.size() <= work);
  call_ranges_.resize(work + 1);
  const auto begin = static_cast<std::uint32_t>(calls_.size());
  calls_.insert(calls_.end(), calls.begin(), calls.end());
  call_ranges_[work] = {begin, static_cast<std::uint32_t>(calls_.size())};
}

void Program::bind_compute(OpId id, std::span<const Access> accesses,
                           std::span<const KernelCall> calls) {
  const Op& op = (*this)[id];
  ASSERT(op.kind == WorkKind::compute);
  ComputeWork& work = computes_[op.work];
  work.accesses_begin = static_cast<std::uint32_t>(accesses_.size());
  accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
  work.accesses_end = static_cast<std::uint32_t>(accesses_.size());
  set_calls(op.work, calls);
}

void Program::bind_transfer(OpId id, const Slice& source, const Slice& target) {
  ASSERT((*this)[id].kind == WorkKind::transfer && source.size == target.size);
  Transfer& work = transfers_[(*this)[id].work];
  ASSERT(source.size == work.size);
  work.source_buffer = source.buffer, work.source_offset = source.offset;
  work.target_buffer = target.buffer, work.target_offset = target.offset;
}

void Program::bind_collective(OpId id, const Slice& data, const Slice& result) {
  ASSERT((*this)[id].kind == WorkKind::collective);
  Collective work = collective((*this)[id]);
  ASSERT(data.size == work.data.size);
  work.data = data;
  work.result = result;
  change_collective(id, work);
}

void Program::set_numbers(OpId id, Combine combine, Precision numbers) {
  const Op& op = (*this)[id];
  ASSERT(op.kind == WorkKind::transfer || op.kind == WorkKind::collective);
  if (op.kind == WorkKind::transfer) {
    transfers_[op.work].combine = combine;
    transfers_[op.work].numbers = numbers;
    return;
  }
  Collective work = collective(op);
  work.combine = combine;
  work.numbers = numbers;
  change_collective(id, work);
}

void Program::set_compute(OpId id, const Compute& work) {
  ASSERT((*this)[id].kind == WorkKind::compute);
  computes_[(*this)[id].work].kernel = kernel(work);
}

void Program::set_transfer(OpId id, const Transfer& work) {
  Op& op = ops_[index(id)];
  ASSERT(op.kind == WorkKind::transfer || op.kind == WorkKind::collective);
  if (op.kind == WorkKind::transfer) {
    transfers_[op.work] = work;
    return;
  }
  op.kind = WorkKind::transfer;
  op.work = static_cast<std::uint32_t>(transfers_.size());
  transfers_.push_back(work);
}

void Program::set_connection(ConnectionId id, Connection connection) {
  connections_[index(id)] = std::move(connection);
}

void Program::drop_unused_collectives() {
  const std::vector<Collective> all = std::exchange(collectives_, {});
  recent_collectives_ = {};
  for (Op& op : ops_)
    if (op.kind == WorkKind::collective) op.work = collective_number(all[op.work]);
}

void Program::set_algorithm(OpId id, std::string_view algorithm, std::uint16_t protocol) {
  ASSERT((*this)[id].kind == WorkKind::collective);
  Collective work = collective((*this)[id]);
  work.algorithm = algorithm;
  work.protocol = protocol;
  change_collective(id, work);
}

std::string Program::label(OpId id) const {
  const Label label = (*this)[id].label;
  if (label.name >= names_.size()) return "unnamed";  // a program written by hand may have no names
  const std::string& text = names_[label.name];
  return label.number == Label::no_number ? text : fmt::format("{} {}", text, label.number);
}

std::string Program::describe(OpId id) const {
  const Op& op = (*this)[id];
  return fmt::format("op {} '{}' (rank {}, {})", index(id), label(id), index(op.rank),
                     stream_name(op.stream));
}

void Program::reserve(std::size_t ops, std::size_t edges) {
  ops_.reserve(ops);
  after_begin_.reserve(ops + 1);
  after_.reserve(edges);
  transfers_.reserve(ops);
}

void Program::set_after(OpId id, std::span<const OpId> after) {
  const std::size_t begin = after_begin_[index(id)], end = after_begin_[index(id) + 1];
  const auto at = after_.erase(after_.begin() + static_cast<std::ptrdiff_t>(begin),
                               after_.begin() + static_cast<std::ptrdiff_t>(end));
  after_.insert(at, after.begin(), after.end());
  for (std::size_t i = index(id) + 1; i < after_begin_.size(); ++i)
    after_begin_[i] = static_cast<std::uint32_t>(after_begin_[i] + after.size() - (end - begin));
}

void Program::adopt(std::vector<std::string> names, std::span<const std::uint32_t> after_begin,
                    std::span<const OpId> after) {
  ASSERT(after_begin.size() == ops_.size() + 1 && after_begin.back() == after.size());
  names_ = std::move(names);
  after_begin_.assign(after_begin.begin(), after_begin.end());
  after_.assign(after.begin(), after.end());
}

std::string_view to_string(CollectiveKind kind) {
  constexpr std::array<std::string_view, 7> names{"all_reduce", "reduce_scatter", "all_gather",
                                                  "broadcast",  "reduce",         "all_to_all",
                                                  "send_recv"};
  return names[static_cast<std::size_t>(kind)];
}

std::string stream_name(Stream stream) {
  if (stream == Stream::compute) return "compute";
  if (stream == Stream::copy) return "copy";
  if (is_queue(stream)) return fmt::format("queue {}", index(stream) - index(Stream::queue));
  return fmt::format("comm {}", index(stream) - index(Stream::comm));
}

}  // namespace rehearse
