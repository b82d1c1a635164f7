// How long each buffer must be is read off the program; each begins where CUDA would align it.
#include "kernels/cuda/cuda_memory.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/host/program_slices.hpp"
#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

CudaMemory::CudaMemory(const Program& program, std::vector<int> device_of,
                       std::span<const Place> more)
    : device_of_{std::move(device_of)} {
  const auto see = [&](Rank rank, const Slice& slice) {
    ASSERT(index(rank) < device_of_.size());
    if (!is_here(rank)) return;
    std::size_t& size = rooms_[{rank, slice.buffer}].size;
    size = std::max(size, static_cast<std::size_t>((slice.offset + slice.size).count()));
  };
  for (const Program::Op& op : program.ops()) for_each_slice(program, op, see);
  for (const Place& place : more) see(place.rank, place.slice);
  constexpr std::size_t alignment = 256;
  std::map<int, std::size_t> used;
  for (auto& [where, room] : rooms_) {
    std::size_t& top = used[device_of_[index(where.first)]];
    room.begin = top;
    top += (room.size + alignment - 1) / alignment * alignment;
  }
  for (const auto& [device, bytes] : used) blocks_[device] = make_block(device, bytes);
}

std::span<std::byte> CudaMemory::at(Rank rank, const Slice& slice) const {
  if (slice.size == Bytes{0}) return {};
  const auto found = rooms_.find({rank, slice.buffer});
  ASSERT(found != rooms_.end());
  const auto begin = static_cast<std::size_t>(slice.offset.count());
  const auto size = static_cast<std::size_t>(slice.size.count());
  ASSERT(begin <= found->second.size && size <= found->second.size - begin);
  std::byte* block = blocks_.at(device_of(rank)).get();
  return {block + found->second.begin + begin, size};
}

void CudaMemory::load(Rank rank, const Slice& slice, std::span<const std::byte> bytes) const {
  const std::span<std::byte> target = at(rank, slice);
  ASSERT(target.size() == bytes.size());
  if (bytes.empty()) return;
  CUDA_TRY(cudaSetDevice(device_of(rank)));
  CUDA_TRY(cudaMemcpy(target.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
}

std::vector<std::byte> CudaMemory::read(Rank rank, const Slice& slice) const {
  const std::span<const std::byte> source = at(rank, slice);
  std::vector<std::byte> bytes(source.size());
  if (bytes.empty()) return bytes;
  CUDA_TRY(cudaSetDevice(device_of(rank)));
  CUDA_TRY(cudaMemcpy(bytes.data(), source.data(), bytes.size(), cudaMemcpyDeviceToHost));
  return bytes;
}

std::span<std::byte> StagedCudaMemory::at(Rank rank, const Slice& slice) {
  if (!memory_.is_here(rank)) return {};
  for (Staged& each : staged_)
    if (each.rank == rank && each.slice == slice) return each.bytes;
  return staged_.emplace_back(Staged{rank, slice, memory_.read(rank, slice)}).bytes;
}

void StagedCudaMemory::store() {
  for (const Staged& each : staged_) memory_.load(each.rank, each.slice, each.bytes);
  staged_.clear();
}

}  // namespace rehearse
