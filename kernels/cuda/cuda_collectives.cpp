// Where a slice does not divide evenly among the ranks, its parts go one by one.
#include "kernels/cuda/cuda_collectives.hpp"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "kernels/math/cuda_try.hpp"
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

class NcclCalls {
 public:
  NcclCalls(const Collective& work, std::size_t ranks)
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
