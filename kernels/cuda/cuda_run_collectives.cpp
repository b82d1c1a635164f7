// Collectives as NCCL's own, one communicator for each group of ranks, in place where the Program's
// are. Where a slice does not divide evenly among the ranks, its parts go one by one.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <set>

#include "kernels/cuda/cuda_run.hpp"
#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

ncclDataType_t type_of(Precision numbers) {
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

class Calls {
 public:
  Calls(const Collective& work, std::size_t ranks)
      : work_{work},
        ranks_{ranks},
        type_{type_of(work.numbers)},
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

std::span<const CommunicatorHandle> CudaRun::communicators_of(const std::vector<Rank>& group) {
  std::vector<CommunicatorHandle>& communicators = communicators_[group];
  if (!communicators.empty()) return communicators;
  ASSERT(!options_.processes);  // between processes all are made at the beginning
  std::vector<int> devices;
  for (const Rank rank : group) devices.push_back(memory_.device_of(rank));
  if (std::set<int>{devices.begin(), devices.end()}.size() != devices.size())
    throw DeviceError("NCCL needs a device of its own for every rank: use fewer ranks");
  std::vector<ncclComm_t> made(group.size());
  NCCL_TRY(ncclCommInitAll(made.data(), static_cast<int>(group.size()), devices.data()));
  for (ncclComm_t each : made) communicators.emplace_back(each);
  return communicators;
}

void CudaRun::start_collective(const Program::Op& op) {
  const Collective& work = program_.collective(op);
  if (work.group.size() < 2 || work.data.size == Bytes{0}) return;
  const std::span<const CommunicatorHandle> communicators = communicators_of(work.group);
  const Calls calls{work, work.group.size()};
  Lane& first = *lane_here(op);
  NCCL_TRY(ncclGroupStart());
  for (std::size_t i = 0; i < work.group.size(); ++i) {
    const Rank rank = work.group[i];
    if (!is_here(rank)) continue;
    Lane& lane = lane_of(rank, op.stream);
    CUDA_TRY(cudaSetDevice(lane.device));
    calls.start({i, communicators[i].get(), lane.stream.get(), memory_.at(rank, work.data),
                 memory_.at(rank, work.result)});
  }
  NCCL_TRY(ncclGroupEnd());
  // The op ends when it has ended everywhere; its end is recorded on the first rank's stream.
  for (const Rank rank : work.group)
    if (is_here(rank) && &lane_of(rank, op.stream) != &first)
      order(lane_of(rank, op.stream), first);
}

}  // namespace rehearse
