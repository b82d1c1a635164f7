// One process makes a group's communicators at once; several agree on an id for each group. Where a
// collective's slice does not divide evenly among the ranks, its parts go one by one.
#include "kernels/cuda/cuda_nccl.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

// In the order of the program, which is the same everywhere.
std::vector<std::vector<Rank>> groups_across(const Program& program,
                                             const CudaProcesses& processes) {
  std::vector<std::vector<Rank>> groups;
  auto add = [&, seen = std::set<std::vector<Rank>>{}](std::vector<Rank> group) mutable {
    if (group.size() > 1 && seen.insert(group).second) groups.push_back(std::move(group));
  };
  for (const Program::Op& op : program.ops()) {
    if (op.kind == WorkKind::collective) add(program.collective(op).group);
    if (op.kind != WorkKind::transfer) continue;
    const Connection& way = program[program.transfer(op).connection];
    const bool is_plain = way.shape == Connection::Shape::point_to_point;
    const auto is_apart = [&](Rank rank) { return processes.of(rank) != processes.of(op.rank); };
    if (is_plain && is_apart(way.target)) add({way.source, way.target});
    if (!is_plain && std::ranges::any_of(way.others, is_apart))
      throw InputError(
          "no switch adds or copies between processes here; choose another algorithm, --library "
          "nccl, or one process with all GPUs");
  }
  return groups;
}

}  // namespace

CudaCommunicators::CudaCommunicators(const Program& program, const CudaMemory& memory,
                                     const std::optional<CudaProcesses>& processes)
    : memory_{memory}, may_make_{!processes} {
  if (processes) join(groups_across(program, *processes), *processes);
}

// The first rank of a group makes its id, and all learn all ids at once. Then everybody joins its
// groups in the same order.
void CudaCommunicators::join(const std::vector<std::vector<Rank>>& groups,
                             const CudaProcesses& processes) {
  std::string mine;
  for (const std::vector<Rank>& group : groups) {
    if (processes.of(group.front()) != processes.self) continue;
    ncclUniqueId id;
    NCCL_TRY(ncclGetUniqueId(&id));
    mine.append(id.internal, sizeof id.internal);
  }
  const std::vector<std::string> ids = processes.gather(mine);
  std::vector<std::size_t> taken(ids.size());
  for (const std::vector<Rank>& group : groups) {
    const std::size_t leader = processes.of(group.front());
    ncclUniqueId id;
    std::memcpy(id.internal, ids.at(leader).data() + taken[leader], sizeof id.internal);
    taken[leader] += sizeof id.internal;
    std::vector<ncclComm_t> made(group.size());
    if (std::ranges::none_of(group, [&](Rank rank) { return memory_.is_here(rank); })) continue;
    NCCL_TRY(ncclGroupStart());
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!memory_.is_here(group[i])) continue;
      CUDA_TRY(cudaSetDevice(memory_.device_of(group[i])));
      NCCL_TRY(ncclCommInitRank(&made[i], static_cast<int>(group.size()), id, static_cast<int>(i)));
    }
    NCCL_TRY(ncclGroupEnd());
    for (ncclComm_t each : made) communicators_[group].emplace_back(each);
  }
}

std::span<const CommunicatorHandle> CudaCommunicators::of(const std::vector<Rank>& group) {
  std::vector<CommunicatorHandle>& communicators = communicators_[group];
  if (!communicators.empty()) return communicators;
  ASSERT(may_make_);
  std::vector<int> devices;
  for (const Rank rank : group) devices.push_back(memory_.device_of(rank));
  if (std::set<int>{devices.begin(), devices.end()}.size() != devices.size())
    throw DeviceError("NCCL needs a device of its own for every rank: use fewer ranks");
  std::vector<ncclComm_t> made(group.size());
  NCCL_TRY(ncclCommInitAll(made.data(), static_cast<int>(group.size()), devices.data()));
  for (ncclComm_t each : made) communicators.emplace_back(each);
  return communicators;
}

void CudaCommunicators::check() const {
  for (const auto& [group, communicators] : communicators_)
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      if (communicators[i] == nullptr) continue;
      ncclResult_t error = ncclSuccess;
      NCCL_TRY(ncclCommGetAsyncError(communicators[i].get(), &error));
      if (error != ncclSuccess && error != ncclInProgress)
        throw DeviceError(
            fmt::format("NCCL on rank {}: {}", index(group[i]), ncclGetErrorString(error)));
    }
}

namespace {

ncclDataType_t nccl_type_of(Precision numbers) {
  switch (numbers) {
    case Precision::fp16:
      return ncclFloat16;
    case Precision::bf16:
      return ncclBfloat16;
    case Precision::fp8:
      return ncclFloat8e4m3;
    case Precision::int8:
      return ncclInt8;
    case Precision::fp32:
    case Precision::tf32:
      break;
  }
  return ncclFloat32;
}

// One rank's part of a collective.
struct Member {
  std::size_t number;  // in the group
  ncclComm* communicator;
  CUstream_st* stream;
  std::span<std::byte> data, result;
};

class NcclCalls {
 public:
  NcclCalls(const Collective& work, std::size_t ranks)
      : work_{work},
        ranks_{ranks},
        type_{nccl_type_of(work.numbers)},
        how_{work.combine == Combine::max ? ncclMax : ncclSum},
        unit_{static_cast<std::size_t>(bytes_of(work.numbers).count())},
        parts_{work.data, ranks} {}  // as our own schedules cut them

  void start(const Member& of) const {
    const int root = static_cast<int>(work_.root);
    switch (work_.kind) {
      case CollectiveKind::all_reduce:
        NCCL_TRY(ncclAllReduce(of.data.data(), of.data.data(), numbers(of.data), type_, how_,
                               of.communicator, of.stream));
        return;
      case CollectiveKind::reduce:
        NCCL_TRY(ncclReduce(of.data.data(), of.data.data(), numbers(of.data), type_, how_, root,
                            of.communicator, of.stream));
        return;
      case CollectiveKind::broadcast:
        NCCL_TRY(ncclBroadcast(of.data.data(), of.data.data(), numbers(of.data), type_, root,
                               of.communicator, of.stream));
        return;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_gather:
        return start_parts(of);
      case CollectiveKind::all_to_all:
        return exchange(of);
      case CollectiveKind::send_recv:
        return hand_on(of);
    }
  }

 private:
  std::size_t numbers(std::span<const std::byte> bytes) const {
    if (bytes.size() % unit_ != 0)
      throw DeviceError("a collective of NCCL over a part of a number: choose other sizes");
    return bytes.size() / unit_;
  }
  std::span<std::byte> part(const Member& of, std::size_t i) const {
    const Slice slice = parts_[i];
    return of.data.subspan(static_cast<std::size_t>((slice.offset - work_.data.offset).count()),
                           static_cast<std::size_t>(slice.size.count()));
  }
  bool is_even() const { return parts_[0].size == parts_[ranks_ - 1].size; }

  void start_parts(const Member& of) const {
    const bool gathers = work_.kind == CollectiveKind::all_gather;
    const std::span<std::byte> mine = part(of, of.number);
    if (is_even() && gathers) {
      NCCL_TRY(ncclAllGather(mine.data(), of.data.data(), numbers(mine), type_, of.communicator,
                             of.stream));
    } else if (is_even()) {
      NCCL_TRY(ncclReduceScatter(of.data.data(), mine.data(), numbers(mine), type_, how_,
                                 of.communicator, of.stream));
    } else {
      for (std::size_t i = 0; i < ranks_; ++i) {
        const std::span<std::byte> each = part(of, i);
        const int root = static_cast<int>(i);
        if (each.empty()) continue;
        if (gathers)
          NCCL_TRY(ncclBroadcast(each.data(), each.data(), numbers(each), type_, root,
                                 of.communicator, of.stream));
        else
          NCCL_TRY(ncclReduce(each.data(), each.data(), numbers(each), type_, how_, root,
                              of.communicator, of.stream));
      }
    }
  }

  // As the lowered one: block j goes to rank j, which puts it where the sender's blocks belong.
  // What a rank keeps is nobody's transfer.
  void exchange(const Member& of) const {
    const std::size_t step = part(of, of.number).size();
    for (std::size_t peer = 0; peer < ranks_; ++peer) {
      if (peer == of.number) continue;
      const std::span<std::byte> out = part(of, peer);
      NCCL_TRY(ncclSend(out.data(), out.size(), ncclUint8, static_cast<int>(peer), of.communicator,
                        of.stream));
      NCCL_TRY(ncclRecv(of.result.data() + peer * step, step, ncclUint8, static_cast<int>(peer),
                        of.communicator, of.stream));
    }
  }

  // Each rank to the next of the group.
  void hand_on(const Member& of) const {
    const int next = static_cast<int>((of.number + 1) % ranks_);
    const int before = static_cast<int>((of.number + ranks_ - 1) % ranks_);
    NCCL_TRY(ncclSend(of.data.data(), of.data.size(), ncclUint8, next, of.communicator, of.stream));
    NCCL_TRY(ncclRecv(of.result.data(), of.result.size(), ncclUint8, before, of.communicator,
                      of.stream));
  }

  const Collective& work_;
  std::size_t ranks_;
  ncclDataType_t type_;
  ncclRedOp_t how_;
  std::size_t unit_;
  Cut parts_;
};

}  // namespace

void start_collective(const Program& program, const Program::Op& op, const CudaMemory& memory,
                      CudaStreams& streams, CudaCommunicators& communicators) {
  const Collective& work = program.collective(op);
  if (work.group.size() < 2 || work.data.size == Bytes{0}) return;
  const std::span<const CommunicatorHandle> members = communicators.of(work.group);
  const NcclCalls calls{work, work.group.size()};
  NCCL_TRY(ncclGroupStart());
  for (std::size_t i = 0; i < work.group.size(); ++i) {
    const Rank rank = work.group[i];
    if (!memory.is_here(rank)) continue;
    const CudaStream& stream = streams.at(rank, op.stream);
    CUDA_TRY(cudaSetDevice(stream.device));
    calls.start({i, members[i].get(), stream.handle.get(), memory.at(rank, work.data),
                 memory.at(rank, work.result)});
  }
  NCCL_TRY(ncclGroupEnd());
  // The op ends when it has ended everywhere; its end is recorded on the first rank's stream.
  const CudaStream& first = *streams.of(op);
  for (CudaStream* const stream : streams.all_of(op))
    if (stream != &first) order(*stream, first);
}

}  // namespace rehearse
