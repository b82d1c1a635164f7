// What is under way in one run of the CUDA executor: the streams, the events between them, the
// communicators, and scratch memory. Everything is put on streams; nothing waits but finish().
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda_executor.hpp"
#include "sim/stream_table.hpp"

namespace rehearse {

class CudaRun {
 public:
  CudaRun(const Program& program, const CudaMemory& memory, const CudaOptions& options);

  void start();   // puts every op on its streams
  void finish();  // waits for all of them
  Timeline timeline();

 private:
  struct Lane {
    int device = 0;
    StreamHandle stream;
  };
  /// A stream on the target's device, for what is done there to what arrives from one lane.
  struct Arrival {
    Lane lane;
    DeviceBlock staging;
    std::size_t staging_bytes = 0;
  };
  struct Moments {
    EventHandle begin, end;
  };
  struct Scratch {
    DeviceBlock block;
    std::size_t bytes = 0, used = 0;
  };
  using DeviceBytes = std::span<std::byte>;

  Lane& lane_of(Rank rank, Stream stream) { return lanes_[streams_.number(rank, stream)]; }
  int node_of(Rank rank) const;
  void wait_for_inputs(OpId id, Lane& lane);
  void record(EventHandle& event, Lane& lane, bool with_time);
  /// What comes later on `second` waits for all that is on `first` now.
  void order(Lane& first, Lane& second);
  bool reaches(int device, int other);

  std::byte* take(Scratch& scratch, int device, std::size_t bytes);
  void start_compute(const Program::Op& op, Lane& lane);
  void start_transfer(const Program::Op& op, Lane& lane);
  void start_collective(const Program::Op& op);
  void deliver(Lane& lane, Rank source, DeviceBytes from, Rank target, DeviceBytes to,
               const Transfer& work);
  void reduce_by_switch(Lane& lane, const Transfer& work, const Connection& way);
  /// Bytes of a rank, as they are or as a copy, where `arrival` can read them.
  DeviceBytes bring(Lane& lane, Rank source, DeviceBytes from, Rank target, Arrival& arrival);
  void send(Lane& lane, Rank source, DeviceBytes from, Rank target, DeviceBytes to, Lane& receiver);
  Arrival& arrival_of(const Lane& lane, int device, std::size_t staging_bytes);
  std::span<const CommunicatorHandle> communicators_of(const std::vector<Rank>& group);
  void check_communicators();
  void give_up_at(OpId id, std::size_t& ended);

  const Program& program_;
  const CudaMemory& memory_;
  const CudaOptions& options_;
  StreamTable streams_;
  std::vector<Lane> lanes_;
  std::map<std::pair<const Lane*, int>, Arrival> arrivals_;
  std::map<std::pair<int, int>, bool> reaches_;
  std::map<int, BlasHandle> blas_;
  std::map<const Lane*, Scratch> scratch_;
  std::vector<DeviceBlock> outgrown_;          // scratch that work under way may still use
  std::map<int, EventHandle> origins_;         // by device: when its clock begins
  std::vector<Moments> moments_;               // by op
  std::map<const Lane*, EventHandle> joints_;  // of order(), by its first lane
  // Last, so that they end first: streams could not be destroyed while they wait for a lost rank.
  std::map<std::vector<Rank>, std::vector<CommunicatorHandle>> communicators_;
};

}  // namespace rehearse
