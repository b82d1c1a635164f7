// Vector clocks in one pass over the program, recycled as soon as nobody can ask for them.
#include "sim/program/happens_before.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "sim/base/error.hpp"
#include "sim/program/deadlock.hpp"

namespace rehearse {

namespace {

bool all_edges_point_back(const Program& program) {
  for (std::size_t i = 0; i < program.size(); ++i)
    for (const OpId input : program.after(static_cast<OpId>(i)))
      if (index(input) >= i) return false;
  return true;
}

// Edges as successor lists, stream order included; lists of op i are [begin[i], begin[i + 1]).
struct Successors {
  std::vector<std::uint32_t> begin;
  std::vector<OpId> ops;
};

template <class Visit>
void for_each_predecessor(const Program& program, const StreamTable& streams, Visit visit) {
  std::vector<OpId> last(streams.size(), no_op);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = program[id];
    for (const Rank rank : ranks_of(program, op)) {
      if (is_queue(op.stream)) break;
      OpId& previous = last[streams.number(rank, op.stream)];
      // A group that names a rank twice would make its op wait for itself.
      if (previous != no_op && previous != id) visit(previous, id);
      previous = id;
    }
    for (const OpId input : program.after(id)) visit(input, id);
  }
}

Successors successors_of(const Program& program, const StreamTable& streams) {
  Successors out;
  out.begin.assign(program.size() + 1, 0);
  for_each_predecessor(program, streams, [&](OpId from, OpId) { ++out.begin[index(from) + 1]; });
  std::partial_sum(out.begin.begin(), out.begin.end(), out.begin.begin());
  out.ops.resize(out.begin.back());
  std::vector<std::uint32_t> next(out.begin.begin(), out.begin.end() - 1);
  for_each_predecessor(program, streams,
                       [&](OpId from, OpId to) { out.ops[next[index(from)]++] = to; });
  return out;
}

std::vector<OpId> order_of(const Program& program, const StreamTable& streams) {
  std::vector<OpId> order;
  order.reserve(program.size());
  if (all_edges_point_back(program)) {
    for (std::size_t i = 0; i < program.size(); ++i) order.push_back(static_cast<OpId>(i));
    return order;
  }
  const Successors successors = successors_of(program, streams);
  std::vector<std::uint32_t> waiting(program.size(), 0);
  for (const OpId to : successors.ops) ++waiting[index(to)];
  for (std::size_t i = 0; i < program.size(); ++i)
    if (waiting[i] == 0) order.push_back(static_cast<OpId>(i));
  for (std::size_t done = 0; done < order.size(); ++done) {
    const std::size_t from = index(order[done]);
    for (std::size_t s = successors.begin[from]; s < successors.begin[from + 1]; ++s)
      if (--waiting[index(successors.ops[s])] == 0) order.push_back(successors.ops[s]);
  }
  if (order.size() < program.size()) {
    std::vector<bool> ordered(program.size(), false);
    for (const OpId id : order) ordered[index(id)] = true;
    throw CheckFailed(waiting_cycle(program, ordered));
  }
  return order;
}

}  // namespace

HappensBefore::HappensBefore(const Program& program)
    : program_{program},
      streams_{program},
      clock_size_{streams_.size()},
      order_{order_of(program, streams_)},
      epochs_(program.size()),
      pending_(program.size(), 0),
      slots_(program.size(), no_clock),
      last_(streams_.size(), no_op),
      passed_(streams_.size(), 0),
      chains_(streams_.size()) {
  for_each_predecessor(program, streams_, [&](OpId from, OpId) { ++pending_[index(from)]; });
  number_arrivals();
}

void HappensBefore::number_arrivals() {
  std::unordered_map<std::uint64_t, std::uint32_t> entries;  // by stream and connection
  std::vector<std::uint32_t> sent;                           // by entry
  for (std::size_t i = 0; i < program_.size(); ++i) {
    const Program::Op& op = program_.ops()[i];
    if (op.kind != WorkKind::transfer) continue;
    const ConnectionId connection = program_.transfer(op).connection;
    if (!program_[connection].posted) continue;
    const std::uint64_t stream = streams_.number(op.rank, op.stream);
    const auto entry = static_cast<std::uint32_t>(sent.size());
    // On a queue who arrives first is not known: each has an entry of its own.
    std::uint32_t own = entry;
    if (!is_queue(op.stream))
      own = entries.try_emplace(stream << 32 | index(connection), entry).first->second;
    if (own == entry) sent.push_back(0);
    epochs_[i].arrivals = static_cast<std::uint32_t>(streams_.size()) + own;
    epochs_[i].arrival = ++sent[own];
  }
  clock_size_ = streams_.size() + sent.size();
}

std::uint32_t HappensBefore::take_clock() {
  if (!free_.empty()) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  pool_.emplace_back(clock_size_, 0);
  return static_cast<std::uint32_t>(pool_.size() - 1);
}

void HappensBefore::join(OpId predecessor) {
  const std::uint32_t slot = slots_[index(predecessor)];
  if (current_ == no_clock && pending_[index(predecessor)] == 1) {
    // The last to ask takes the clock over: along a lone chain nothing is ever copied.
    current_ = slot;
    slots_[index(predecessor)] = no_clock;
  } else if (current_ == no_clock) {
    current_ = take_clock();
    pool_[current_] = pool_[slot];
  } else if (!left_before(predecessor)) {
    // Who knows of an op knows all that the op knew, so only news needs the full join.
    Clock& mine = pool_[current_];
    const Clock& theirs = pool_[slot];
    if (mine.size() < theirs.size()) mine.resize(theirs.size(), 0);
    for (std::size_t s = 0; s < theirs.size(); ++s) mine[s] = std::max(mine[s], theirs[s]);
  }
  let_go(predecessor);
}

void HappensBefore::let_go(OpId predecessor) {
  ASSERT(pending_[index(predecessor)] > 0);
  if (--pending_[index(predecessor)] > 0) return;
  std::uint32_t& slot = slots_[index(predecessor)];
  if (slot != no_clock) free_.push_back(slot);
  slot = no_clock;
}

void HappensBefore::advance(OpId id) {
  if (at_ != no_op && pending_[index(at_)] == 0) {
    free_.push_back(current_);
    slots_[index(at_)] = no_clock;
  }
  current_ = no_clock;
  const Program::Op& op = program_[id];
  const std::span<const Rank> ranks = ranks_of(program_, op);
  for (const Rank rank : ranks) {
    if (is_queue(op.stream)) break;
    const OpId previous = last_[streams_.number(rank, op.stream)];
    if (previous != no_op && previous != id) join(previous);
    last_[streams_.number(rank, op.stream)] = id;
  }
  for (const OpId input : program_.after(id)) {
    join(input);
    const Epoch& there = epochs_[index(input)];
    if (there.arrivals == not_posted) continue;
    std::uint32_t& arrived = pool_[current_][there.arrivals];
    arrived = std::max(arrived, there.arrival);
  }
  if (current_ == no_clock) {
    current_ = take_clock();
    std::fill(pool_[current_].begin(), pool_[current_].end(), 0);
  }
  slots_[index(id)] = current_;
  at_ = id;
  if (is_queue(op.stream)) return join_chain(streams_.number(op.rank, op.stream), id);
  for (const Rank rank : ranks) {
    const std::uint32_t stream = streams_.number(rank, op.stream);
    pool_[current_][stream] = ++passed_[stream];
  }
  const std::uint32_t own = streams_.number(ranks.front(), op.stream);
  epochs_[index(id)].stream = own;
  epochs_[index(id)].place = passed_[own];
}

void HappensBefore::join_chain(std::uint32_t queue, OpId id) {
  std::vector<Chain>& chains = chains_[queue];
  Clock& clock = pool_[current_];
  const auto known = [&](const Chain& chain) {
    return chain.entry < clock.size() && clock[chain.entry] == chain.length;
  };
  auto chain = std::find_if(chains.begin(), chains.end(), known);
  if (chain == chains.end())
    chain = chains.insert(chain, {static_cast<std::uint32_t>(clock_size_++)});
  if (clock.size() < clock_size_) clock.resize(clock_size_, 0);
  clock[chain->entry] = ++chain->length;
  epochs_[index(id)].stream = chain->entry;
  epochs_[index(id)].place = chain->length;
}

bool HappensBefore::left_before(OpId earlier) const {
  ASSERT(current_ != no_clock);
  const Epoch& epoch = epochs_[index(earlier)];
  const Clock& clock = pool_[current_];
  return epoch.stream < clock.size() && clock[epoch.stream] >= epoch.place;
}

bool HappensBefore::before(OpId earlier) const {
  const Epoch& epoch = epochs_[index(earlier)];
  if (epoch.arrivals == not_posted) return left_before(earlier);
  ASSERT(current_ != no_clock);
  return pool_[current_][epoch.arrivals] >= epoch.arrival;
}

bool HappensBefore::excludes(OpId earlier) const {
  const Program::Op &mine = program_[at_], &theirs = program_[earlier];
  return is_queue(mine.stream) && mine.stream == theirs.stream && mine.rank == theirs.rank &&
         epochs_[index(at_)].arrivals == not_posted &&
         epochs_[index(earlier)].arrivals == not_posted;
}

bool HappensBefore::before_arrival(OpId earlier) const {
  const Epoch &mine = epochs_[index(at_)], &theirs = epochs_[index(earlier)];
  const bool one_way = mine.arrivals != not_posted && mine.arrivals == theirs.arrivals;
  return one_way ? theirs.arrival < mine.arrival : before(earlier);
}

}  // namespace rehearse
