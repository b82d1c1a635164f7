// The buffers of a Program on GPUs: one block of memory a device, in which every rank that lives
// there has its buffers, as long as the program's slices reach.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_handles.hpp"
#include "sim/program/program.hpp"

namespace rehearse {

class CudaMemory {
 public:
  struct Place {
    Rank rank{};
    Slice slice;
  };
  /// Of a rank whose memory is in another process.
  static constexpr int elsewhere = -1;
  /// All zero. Rank r lives on device_of[r]; several ranks may share a device. `more` is what the
  /// caller will load or read beyond the program's slices.
  CudaMemory(const Program& program, std::vector<int> device_of, std::span<const Place> more = {});

  int device_of(Rank rank) const { return device_of_[index(rank)]; }
  bool is_here(Rank rank) const { return device_of(rank) != elsewhere; }
  std::size_t ranks() const { return device_of_.size(); }
  /// Addresses on the rank's device; the slice lies within the program's.
  std::span<std::byte> at(Rank rank, const Slice& slice) const;

  /// Between the host and a slice; waits for it.
  void load(Rank rank, const Slice& slice, std::span<const std::byte> bytes) const;
  std::vector<std::byte> read(Rank rank, const Slice& slice) const;

 private:
  struct Room {
    std::size_t begin = 0, size = 0;  // in its device's block
  };
  std::vector<int> device_of_;
  std::map<std::pair<Rank, Buffer>, Room> rooms_;
  std::map<int, DeviceBlock> blocks_;  // by device
};

/// Slices of devices as bytes of the host: read when first asked for, written back by store();
/// empty where the rank is elsewhere.
/// Slices that are asked for between two store() are the same or do not overlap.
class StagedCudaMemory {
 public:
  explicit StagedCudaMemory(const CudaMemory& memory) : memory_{memory} {}
  std::span<std::byte> at(Rank rank, const Slice& slice);
  void store();

 private:
  struct Staged {
    Rank rank;
    Slice slice;
    std::vector<std::byte> bytes;
  };
  const CudaMemory& memory_;
  std::deque<Staged> staged_;
};

}  // namespace rehearse
