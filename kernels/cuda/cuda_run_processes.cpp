// A process for each GPU: every one goes through the whole program and does its own part.
//
//   process 0, rank 0   ──[ncclSend]──▶             rank 0 goes on when the bytes have left
//                             ╲
//   process 1, side     ───────●[ncclRecv]─[sum]──●
//              rank 1   ───────────────────────────●─[next]──▶
//
// A part waits for those parts of the same process that the program has before it, by edges and
// streams of whatever process: nothing else touches the memory here, and what must come from
// elsewhere comes as data. Everybody issues in program order and waits for what is before it in
// that order only: nothing can wait in a circle.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>

#include "kernels/cuda/cuda_run.hpp"
#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

using Shape = Connection::Shape;

constexpr std::int32_t nobody = -1;

}  // namespace

CudaRun::Lane* CudaRun::lane_here(const Program::Op& op) {
  for (const Rank rank : ranks_of(program_, op))
    if (is_here(rank)) return &lane_of(rank, op.stream);
  if (op.kind != WorkKind::transfer) return nullptr;
  const Rank target = program_[program_.transfer(op).connection].target;
  return is_here(target) ? &side_lane(target) : nullptr;
}

CudaRun::Lane& CudaRun::side_lane(Rank rank) {
  Lane& lane = side_lanes_[rank];
  if (lane.stream != nullptr) return lane;
  lane.device = memory_.device_of(rank);
  lane.stream = make_stream(lane.device);
  if (!origins_.contains(lane.device)) origins_[lane.device] = make_event(lane.device, true);
  return lane;
}

std::vector<const CudaRun::Lane*> CudaRun::lanes_here(const Program::Op& op) {
  std::vector<const Lane*> lanes;
  for (const Rank rank : ranks_of(program_, op))
    if (is_here(rank)) lanes.push_back(&lane_of(rank, op.stream));
  if (lanes.empty())
    if (const Lane* lane = lane_here(op)) lanes.push_back(lane);
  return lanes;
}

// Of each lane here the last part that comes before an op: the ones before it on the lane are over
// by then, too.
void CudaRun::find_predecessors() {
  for (const Program::Op& op : program_.ops()) {
    if (is_queue(op.stream))
      throw InputError("queues of parameter servers are for one process with all GPUs");
    for (const Lane* lane : lanes_here(op)) lane_numbers_.emplace(lane, lane_numbers_.size());
  }
  const std::size_t lanes = lane_numbers_.size();
  before_.assign(program_.size() * lanes, nobody);
  std::vector<std::int32_t> last(streams_.size(), nobody);  // by stream of any process
  for (std::size_t i = 0; i < program_.size(); ++i) {
    const std::span<std::int32_t> mine = std::span{before_}.subspan(i * lanes, lanes);
    const auto come_after = [&](std::size_t other) {
      for (std::size_t lane = 0; lane < lanes; ++lane)
        mine[lane] = std::max(mine[lane], before_[other * lanes + lane]);
      for (const Lane* lane : lanes_here(program_.ops()[other])) {
        std::int32_t& latest = mine[lane_numbers_.at(lane)];
        latest = std::max(latest, static_cast<std::int32_t>(other));
      }
    };
    const Program::Op& op = program_.ops()[i];
    for (const OpId input : program_.after(static_cast<OpId>(i))) come_after(index(input));
    for (const Rank rank : ranks_of(program_, op)) {
      std::int32_t& previous = last[streams_.number(rank, op.stream)];
      if (previous != nobody) come_after(static_cast<std::size_t>(previous));
      previous = static_cast<std::int32_t>(i);
    }
  }
}

void CudaRun::wait_for_predecessors(OpId id, Lane& lane) {
  const std::size_t lanes = lane_numbers_.size(), own = lane_numbers_.at(&lane);
  waited_.resize(lanes * lanes, nobody);
  for (std::size_t other = 0; other < lanes; ++other) {
    const std::int32_t latest = before_[index(id) * lanes + other];
    std::int32_t& waited = waited_[own * lanes + other];
    if (other == own || latest <= waited) continue;
    const EventHandle& end = moments_[static_cast<std::size_t>(latest)].end;
    CUDA_TRY(cudaStreamWaitEvent(lane.stream.get(), end.get(), 0));
    waited = latest;
  }
}

// In the order of the program, which is the same everywhere.
std::vector<std::vector<Rank>> CudaRun::groups_to_make() const {
  std::vector<std::vector<Rank>> groups;
  auto add = [&, seen = std::set<std::vector<Rank>>{}](std::vector<Rank> group) mutable {
    if (group.size() > 1 && seen.insert(group).second) groups.push_back(std::move(group));
  };
  for (const Program::Op& op : program_.ops()) {
    if (op.kind == WorkKind::collective) add(program_.collective(op).group);
    if (op.kind != WorkKind::transfer) continue;
    const Connection& way = program_[program_.transfer(op).connection];
    const auto is_apart = [&](Rank rank) { return process_of(rank) != process_of(op.rank); };
    if (way.shape == Shape::point_to_point && is_apart(way.target)) add({way.source, way.target});
    if (way.shape != Shape::point_to_point && std::ranges::any_of(way.others, is_apart))
      throw InputError(
          "no switch adds or copies between processes here; choose another algorithm, --library "
          "nccl, or one process with all GPUs");
  }
  return groups;
}

// The first rank of a group makes its id, and all learn all ids at once. Then everybody joins its
// groups in the same order.
void CudaRun::make_communicators() {
  const CudaProcesses& processes = *options_.processes;
  const std::vector<std::vector<Rank>> groups = groups_to_make();
  std::string mine;
  for (const std::vector<Rank>& group : groups) {
    if (process_of(group.front()) != processes.self) continue;
    ncclUniqueId id;
    NCCL_TRY(ncclGetUniqueId(&id));
    mine.append(id.internal, sizeof id.internal);
  }
  const std::vector<std::string> ids = processes.gather(mine);
  std::vector<std::size_t> taken(ids.size());
  for (const std::vector<Rank>& group : groups) {
    const std::size_t leader = process_of(group.front());
    ncclUniqueId id;
    std::memcpy(id.internal, ids.at(leader).data() + taken[leader], sizeof id.internal);
    taken[leader] += sizeof id.internal;
    std::vector<ncclComm_t> made(group.size());
    if (std::ranges::none_of(group, [&](Rank rank) { return is_here(rank); })) continue;
    NCCL_TRY(ncclGroupStart());
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!is_here(group[i])) continue;
      CUDA_TRY(cudaSetDevice(memory_.device_of(group[i])));
      NCCL_TRY(ncclCommInitRank(&made[i], static_cast<int>(group.size()), id, static_cast<int>(i)));
    }
    NCCL_TRY(ncclGroupEnd());
    for (ncclComm_t each : made) communicators_[group].emplace_back(each);
  }
}

ncclComm* CudaRun::communicator_between(Rank source, Rank target, Rank whose) {
  return communicators_.at({source, target})[whose == source ? 0 : 1].get();
}

// One half of it is here.
void CudaRun::deliver_far(Lane& lane, const Transfer& work, const Connection& way) {
  if (is_here(way.source)) {
    const DeviceBytes from = memory_.at(way.source, work.source());
    NCCL_TRY(ncclSend(from.data(), from.size(), ncclUint8, 1,
                      communicator_between(way.source, way.target, way.source), lane.stream.get()));
  } else {
    const DeviceBytes to = memory_.at(way.target, work.target());
    Scratch& scratch = scratch_[&lane];
    scratch.used = 0;
    const bool is_plain = work.combine == Combine::overwrite;
    std::byte* const arrived = is_plain ? to.data() : take(scratch, lane.device, to.size());
    CUDA_TRY(cudaSetDevice(lane.device));
    NCCL_TRY(ncclRecv(arrived, to.size(), ncclUint8, 0,
                      communicator_between(way.source, way.target, way.target), lane.stream.get()));
    if (!is_plain)
      combine_on(lane.stream.get(), work.combine, work.numbers, {arrived, to.size()}, to);
  }
}

// An op begins where its stream is, and ends when it has ended everywhere.
void CudaRun::share_timeline(Timeline& timeline) {
  const CudaProcesses& processes = *options_.processes;
  std::vector<std::int64_t> mine{1000 * begun_.count() - processes.clock_ahead.ps()};
  for (const Timeline::Span& span : timeline.spans) {
    const bool is_mine = span.begin != Time::never();
    mine.push_back(is_mine ? span.begin.ps() : -1);
    mine.push_back(is_mine ? span.end.ps() : -1);
  }
  std::vector<std::vector<std::int64_t>> all;
  std::int64_t first = INT64_MAX;
  const auto bytes = std::as_bytes(std::span{mine});
  for (const std::string& text :
       processes.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    std::vector<std::int64_t>& numbers = all.emplace_back(text.size() / sizeof(std::int64_t));
    ASSERT(numbers.size() == mine.size());
    std::memcpy(numbers.data(), text.data(), text.size());
    first = std::min(first, numbers[0]);
  }
  timeline.makespan = {};
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    Timeline::Span& span = timeline.spans[i];
    const Rank begins = ranks_of(program_, program_.ops()[i]).front();
    const std::vector<std::int64_t>& there = all[process_of(begins)];
    span.begin = Time::picoseconds(there[2 * i + 1] + there[0] - first);
    span.end = span.begin;
    for (const std::vector<std::int64_t>& each : all)
      if (each[2 * i + 2] >= 0)
        span.end = std::max(span.end, Time::picoseconds(each[2 * i + 2] + each[0] - first));
    timeline.makespan = std::max(timeline.makespan, span.end);
  }
}

}  // namespace rehearse
