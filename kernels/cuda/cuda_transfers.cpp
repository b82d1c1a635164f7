// Which of the ways a transfer goes, and the kernels that combine what arrives with what is there:
// what kernels/host/combine.hpp does on the host.
#include "kernels/cuda/cuda_transfers.hpp"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "kernels/host/combine.hpp"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

template <class Number>
void combine_numbers(DeviceStream stream, Combine how, std::span<const std::byte> source,
                     std::span<std::byte> target) {
  const std::size_t count = source.size() / sizeof(Number);
  ASSERT(reinterpret_cast<std::uintptr_t>(source.data()) % sizeof(Number) == 0);
  ASSERT(reinterpret_cast<std::uintptr_t>(target.data()) % sizeof(Number) == 0);
  const std::span<const Number> x{reinterpret_cast<const Number*>(source.data()), count};
  const std::span<Number> total{reinterpret_cast<Number*>(target.data()), count};
  if (how == Combine::sum)
    add_into(stream, x, total);
  else
    larger_into(stream, x, total);
}

void combine_on(DeviceStream stream, Combine how, Precision numbers,
                std::span<const std::byte> source, std::span<std::byte> target) {
  ASSERT(source.size() == target.size());
  if (numbers == Precision::fp8) throw DeviceError("sums of fp8 numbers have no CUDA form yet");
  if (numbers == Precision::int8) {
    ASSERT(how == Combine::sum);
    add_codes(stream, {reinterpret_cast<const std::int8_t*>(source.data()), source.size()},
              std::span{reinterpret_cast<std::int8_t*>(target.data()), target.size()});
  } else if (numbers == Precision::fp16)
    combine_numbers<Fp16>(stream, how, source, target);
  else if (numbers == Precision::bf16)
    combine_numbers<Bf16>(stream, how, source, target);
  else
    combine_numbers<float>(stream, how, source, target);
  const std::size_t rest = source.size() % static_cast<std::size_t>(bytes_of(numbers).count());
  if (rest > 0)
    CUDA_TRY(cudaMemcpyAsync(target.data() + target.size() - rest,
                             source.data() + source.size() - rest, rest, cudaMemcpyDefault,
                             stream));
}

}  // namespace

CudaTransfers::CudaTransfers(const Program& program, const CudaMemory& memory,
                             const std::vector<int>& node_of, CudaStreams& streams,
                             CudaCommunicators& communicators)
    : program_{program},
      memory_{memory},
      node_of_{node_of},
      streams_{streams},
      communicators_{communicators} {}

void CudaTransfers::start(const Transfer& work, CudaStream& stream) {
  if (work.size == Bytes{0}) return;
  const Connection& way = program_[work.connection];
  const bool is_plain = way.shape == Connection::Shape::point_to_point;
  if (is_plain && !(memory_.is_here(way.source) && memory_.is_here(way.target)))
    return start_half(work, way, stream);
  if (way.shape == Connection::Shape::switch_reduce) return reduce_by_switch(stream, work, way);
  const Place source = place(way.source, work.source());
  if (is_plain) return deliver(stream, source, place(way.target, work.target()), work);
  for (const Rank other : way.others) deliver(stream, source, place(other, work.target()), work);
}

CudaTransfers::Place CudaTransfers::place(Rank rank, const Slice& slice) const {
  return {rank, memory_.device_of(rank), node_of_.empty() ? 0 : node_of_[index(rank)],
          memory_.at(rank, slice)};
}

// Between processes, of which this is one.
void CudaTransfers::start_half(const Transfer& work, const Connection& way, CudaStream& stream) {
  const auto both = communicators_.of({way.source, way.target});
  if (memory_.is_here(way.source)) {
    const std::span<std::byte> from = memory_.at(way.source, work.source());
    NCCL_TRY(ncclSend(from.data(), from.size(), ncclUint8, 1, both[0].get(), stream.handle.get()));
    return;
  }
  const std::span<std::byte> to = memory_.at(way.target, work.target());
  stream.scratch.used = 0;
  const bool overwrites = work.combine == Combine::overwrite;
  std::byte* const arrived = overwrites ? to.data() : streams_.take_scratch(stream, to.size());
  CUDA_TRY(cudaSetDevice(stream.device));
  NCCL_TRY(ncclRecv(arrived, to.size(), ncclUint8, 0, both[1].get(), stream.handle.get()));
  if (!overwrites)
    combine_on(stream.handle.get(), work.combine, work.numbers, {arrived, to.size()}, to);
}

void CudaTransfers::deliver(CudaStream& stream, const Place& source, const Place& target,
                            const Transfer& work) {
  const std::size_t size = source.bytes.size();
  const bool overwrites = work.combine == Combine::overwrite;
  if (overwrites && source.node == target.node) {
    CUDA_TRY(cudaSetDevice(source.device));
    CUDA_TRY(cudaMemcpyPeerAsync(target.bytes.data(), target.device, source.bytes.data(),
                                 source.device, size, stream.handle.get()));
    return;
  }
  CudaStream& arrival = streams_.arrival(stream, target.device, size);
  if (overwrites) {
    order(stream, arrival);
    send(stream, source, target, arrival);
  } else {
    const std::span<std::byte> brought = bring(stream, source, target, arrival);
    CUDA_TRY(cudaSetDevice(target.device));
    combine_on(arrival.handle.get(), work.combine, work.numbers, brought, target.bytes);
  }
  order(arrival, stream);
}

// The switch combines its sources in their order, beside the target: that may be one of them.
void CudaTransfers::reduce_by_switch(CudaStream& stream, const Transfer& work,
                                     const Connection& way) {
  if (way.others.empty()) return;
  const Place target = place(way.target, work.target());
  const std::size_t size = target.bytes.size();
  CudaStream& sum = streams_.arrival(stream, target.device, size);
  const std::span<std::byte> total{sum.scratch.block.get(), size};
  order(stream, sum);
  for (std::size_t i = 0; i < way.others.size(); ++i) {
    const Place source = place(way.others[i], work.source());
    CudaStream& arrival = streams_.arrival(sum, target.device, size);
    const std::span<std::byte> brought = bring(sum, source, target, arrival);
    CUDA_TRY(cudaSetDevice(target.device));
    if (i == 0)
      CUDA_TRY(cudaMemcpyAsync(total.data(), brought.data(), size, cudaMemcpyDefault,
                               arrival.handle.get()));
    else
      combine_on(arrival.handle.get(), combine_in_switch(work), work.numbers, brought, total);
    order(arrival, sum);
  }
  CUDA_TRY(cudaSetDevice(target.device));
  if (work.combine == Combine::overwrite)
    CUDA_TRY(cudaMemcpyAsync(target.bytes.data(), total.data(), size, cudaMemcpyDeviceToDevice,
                             sum.handle.get()));
  else
    combine_on(sum.handle.get(), work.combine, work.numbers, total, target.bytes);
  order(sum, stream);
}

std::span<std::byte> CudaTransfers::bring(CudaStream& stream, const Place& source,
                                          const Place& target, CudaStream& arrival) {
  Place staging = target;
  staging.bytes = {arrival.scratch.block.get(), source.bytes.size()};
  order(stream, arrival);
  if (source.node != target.node) {
    send(stream, source, staging, arrival);
    return staging.bytes;
  }
  if (reaches(target.device, source.device)) return source.bytes;
  CUDA_TRY(cudaSetDevice(target.device));
  CUDA_TRY(cudaMemcpyPeerAsync(staging.bytes.data(), target.device, source.bytes.data(),
                               source.device, source.bytes.size(), arrival.handle.get()));
  return staging.bytes;
}

void CudaTransfers::send(const CudaStream& stream, const Place& source, const Place& target,
                         const CudaStream& arrival) {
  std::vector<Rank> everyone;
  for (std::size_t rank = 0; rank < memory_.ranks(); ++rank)
    everyone.push_back(static_cast<Rank>(rank));
  const std::span<const CommunicatorHandle> all = communicators_.of(everyone);
  const std::size_t from = index(source.rank), to = index(target.rank);
  NCCL_TRY(ncclGroupStart());
  NCCL_TRY(ncclSend(source.bytes.data(), source.bytes.size(), ncclUint8, static_cast<int>(to),
                    all[from].get(), stream.handle.get()));
  NCCL_TRY(ncclRecv(target.bytes.data(), target.bytes.size(), ncclUint8, static_cast<int>(from),
                    all[to].get(), arrival.handle.get()));
  NCCL_TRY(ncclGroupEnd());
}

// Asked and enabled once for each pair.
bool CudaTransfers::reaches(int device, int other) {
  if (device == other) return true;
  const auto [at, is_new] = reaches_.try_emplace({device, other}, false);
  if (!is_new) return at->second;
  int can = 0;
  CUDA_TRY(cudaDeviceCanAccessPeer(&can, device, other));
  if (can == 0) return false;
  CUDA_TRY(cudaSetDevice(device));
  const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();  // not a failure: an earlier run did it
  else
    CUDA_TRY(error);
  return at->second = true;
}

}  // namespace rehearse
