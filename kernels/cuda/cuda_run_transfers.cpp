// Transfers: copies on the source's stream; sums on the target's device, which reads the source
// over the link once. Between nodes NCCL carries the bytes.
//
//   source lane   ──●───────────────────●──▶    ● the source's lane goes on when the sum is made
//                    ╲                 ╱
//   arrival       ────●──[sum += x]───●────▶    a stream of the target's device
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include "kernels/cuda/cuda_run.hpp"
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

}  // namespace

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

// Asked and enabled once for each pair.
bool CudaRun::reaches(int device, int other) {
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

CudaRun::Arrival& CudaRun::arrival_of(const Lane& lane, int device, std::size_t staging_bytes) {
  Arrival& arrival = arrivals_[{&lane, device}];
  if (arrival.lane.stream == nullptr) arrival.lane = {device, make_stream(device)};
  if (arrival.staging_bytes < staging_bytes) {
    const CudaRecords::Of nobody{records_.get(), no_op};  // clearing it is not the op's work
    if (arrival.staging != nullptr) outgrown_.push_back(std::move(arrival.staging));
    arrival.staging = make_block(device, staging_bytes);
    arrival.staging_bytes = staging_bytes;
  }
  return arrival;
}

void CudaRun::send(Lane& lane, Rank source, DeviceBytes from, Rank target, DeviceBytes to,
                   Lane& receiver) {
  std::vector<Rank> everyone;
  for (std::size_t rank = 0; rank < memory_.ranks(); ++rank)
    everyone.push_back(static_cast<Rank>(rank));
  const std::span<const CommunicatorHandle> all = communicators_of(everyone);
  const int source_number = static_cast<int>(index(source));
  const int target_number = static_cast<int>(index(target));
  NCCL_TRY(ncclGroupStart());
  NCCL_TRY(ncclSend(from.data(), from.size(), ncclUint8, target_number, all[index(source)].get(),
                    lane.stream.get()));
  NCCL_TRY(ncclRecv(to.data(), to.size(), ncclUint8, source_number, all[index(target)].get(),
                    receiver.stream.get()));
  NCCL_TRY(ncclGroupEnd());
}

CudaRun::DeviceBytes CudaRun::bring(Lane& lane, Rank source, DeviceBytes from, Rank target,
                                    Arrival& arrival) {
  const int here = memory_.device_of(source), there = memory_.device_of(target);
  const DeviceBytes staging{arrival.staging.get(), from.size()};
  order(lane, arrival.lane);
  if (node_of(source) != node_of(target)) {
    send(lane, source, from, target, staging, arrival.lane);
    return staging;
  }
  if (reaches(there, here)) return from;
  CUDA_TRY(cudaSetDevice(there));
  CUDA_TRY(cudaMemcpyPeerAsync(staging.data(), there, from.data(), here, from.size(),
                               arrival.lane.stream.get()));
  return staging;
}

void CudaRun::deliver(Lane& lane, Rank source, DeviceBytes from, Rank target, DeviceBytes to,
                      const Transfer& work) {
  const int here = memory_.device_of(source), there = memory_.device_of(target);
  const bool is_far = node_of(source) != node_of(target);
  if (work.combine == Combine::overwrite && !is_far) {
    CUDA_TRY(cudaSetDevice(here));
    CUDA_TRY(
        cudaMemcpyPeerAsync(to.data(), there, from.data(), here, from.size(), lane.stream.get()));
    return;
  }
  Arrival& arrival = arrival_of(lane, there, from.size());
  if (work.combine == Combine::overwrite) {
    order(lane, arrival.lane);
    send(lane, source, from, target, to, arrival.lane);
  } else {
    const DeviceBytes brought = bring(lane, source, from, target, arrival);
    CUDA_TRY(cudaSetDevice(there));
    combine_on(arrival.lane.stream.get(), work.combine, work.numbers, brought, to);
  }
  order(arrival.lane, lane);
}

// The switch combines its sources in their order, beside the target: that may be one of them.
void CudaRun::reduce_by_switch(Lane& lane, const Transfer& work, const Connection& way) {
  if (way.others.empty()) return;
  const DeviceBytes to = memory_.at(way.target, work.target());
  const int there = memory_.device_of(way.target);
  Arrival& sum = arrival_of(lane, there, to.size());
  const DeviceBytes total{sum.staging.get(), to.size()};
  order(lane, sum.lane);
  for (std::size_t i = 0; i < way.others.size(); ++i) {
    const DeviceBytes from = memory_.at(way.others[i], work.source());
    Arrival& arrival = arrival_of(sum.lane, there, to.size());
    const DeviceBytes brought = bring(sum.lane, way.others[i], from, way.target, arrival);
    CUDA_TRY(cudaSetDevice(there));
    if (i == 0)
      CUDA_TRY(cudaMemcpyAsync(total.data(), brought.data(), total.size(), cudaMemcpyDefault,
                               arrival.lane.stream.get()));
    else
      combine_on(arrival.lane.stream.get(), combine_in_switch(work), work.numbers, brought, total);
    order(arrival.lane, sum.lane);
  }
  CUDA_TRY(cudaSetDevice(there));
  if (work.combine == Combine::overwrite)
    CUDA_TRY(cudaMemcpyAsync(to.data(), total.data(), total.size(), cudaMemcpyDeviceToDevice,
                             sum.lane.stream.get()));
  else
    combine_on(sum.lane.stream.get(), work.combine, work.numbers, total, to);
  order(sum.lane, lane);
}

void CudaRun::start_transfer(const Program::Op& op, Lane& lane) {
  const Transfer& work = program_.transfer(op);
  if (work.size == Bytes{0}) return;
  const Connection& way = program_[work.connection];
  if (way.shape == Connection::Shape::point_to_point &&
      !(is_here(way.source) && is_here(way.target)))
    return deliver_far(lane, work, way);
  if (way.shape == Connection::Shape::switch_reduce) return reduce_by_switch(lane, work, way);
  const DeviceBytes from = memory_.at(way.source, work.source());
  if (way.shape == Connection::Shape::point_to_point)
    return deliver(lane, way.source, from, way.target, memory_.at(way.target, work.target()), work);
  for (const Rank other : way.others)
    deliver(lane, way.source, from, other, memory_.at(other, work.target()), work);
}

}  // namespace rehearse
