// What is under way in one run of the CUDA executor: the streams, the events between them, the
// communicators, and scratch memory. Everything is put on streams; nothing waits but finish().
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_executor.hpp"
#include "kernels/cuda/cuda_ranges.hpp"
#include "kernels/cuda/cuda_records.hpp"
#include "sim/program/stream_table.hpp"

namespace rehearse {

/// What kernels/host/combine.hpp does on the host.
void combine_on(CUstream_st* stream, Combine how, Precision numbers,
                std::span<const std::byte> source, std::span<std::byte> target);

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
    std::size_t asked = 0;  // by this call, of blocks that it outgrew, too
  };
  using DeviceBytes = std::span<std::byte>;
  std::size_t process_of(Rank rank) const { return options_.processes->process_of[index(rank)]; }
  bool is_here(Rank rank) const { return memory_.is_here(rank); }

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
  void start_op(OpId id);
  void start_as_served();  // where there are queues: cuda_run_queues.cpp
  void serve(std::vector<OpId>& arriving, std::vector<OpId>& started);
  void capture_graph();  // of the whole program: cuda_run_graph.cpp
  void launch_graph();
  void finish_graph();
  void keep_served_order(Timeline& timeline) const;
  bool is_over(OpId id) const;
  Timeline recorded_timeline();
  Time since_origin(OpId id, const EventHandle& event);
  // Between processes, in cuda_run_processes.cpp.
  void make_communicators();
  std::vector<std::vector<Rank>> groups_to_make() const;
  /// Where what comes from other processes is received, beside the streams of the program.
  Lane& side_lane(Rank rank);
  /// Where this process's part of an op is (its first); null: it has none.
  Lane* lane_here(const Program::Op& op);
  std::vector<const Lane*> lanes_here(const Program::Op& op);
  void find_predecessors();
  void wait_for_predecessors(OpId id, Lane& lane);
  void deliver_far(Lane& lane, const Transfer& work, const Connection& way);
  ncclComm* communicator_between(Rank source, Rank target, Rank whose);
  void share_timeline(Timeline& timeline);

  void check_communicators();
  bool is_patient();  // asked while the host waits; throws when it should not wait any longer
  void give_up_at(OpId id);

  using Clock = std::chrono::steady_clock;
  struct Watch {
    Clock::time_point asked = Clock::now();
    Clock::duration waited{};
    std::size_t times = 0, ended = 0;
  };

  const Program& program_;
  const CudaMemory& memory_;
  const CudaOptions& options_;
  StreamTable streams_;
  CudaRanges ranges_;
  std::unique_ptr<CudaRecords> records_;  // null: events tell the times
  std::uint64_t records_begin_ = 0;
  std::vector<Lane> lanes_;
  std::map<std::pair<const Lane*, int>, Arrival> arrivals_;
  std::map<std::pair<int, int>, bool> reaches_;
  std::map<int, BlasHandle> blas_;
  std::map<const Lane*, Scratch> scratch_;
  std::vector<DeviceBlock> outgrown_;          // scratch that work under way may still use
  std::map<int, EventHandle> origins_;         // by device: when its clock begins
  std::vector<Moments> moments_;               // by op
  std::map<const Lane*, EventHandle> joints_;  // of order(), by its first lane
  std::vector<OpId> served_;                   // ops of queues, as they were put on their streams
  Watch watch_;
  bool has_run_ = false, is_capturing_ = false;
  Lane graph_lane_;           // where the graph begins and ends
  GraphRunHandle graph_run_;  // null: none yet
  EventHandle graph_end_;
  std::vector<EventHandle> edges_;  // by op, while the graph is made: its end
  std::map<Rank, Lane> side_lanes_;
  std::map<const Lane*, std::size_t> lane_numbers_;  // of this process, where there are others
  std::vector<std::int32_t> before_;                 // by op and lane: the last that comes before
  std::vector<std::int32_t> waited_;                 // by lane and lane: for which it waits already
  std::chrono::nanoseconds begun_{};                 // when the first device's clock began
  // Last, so that they end first: streams could not be destroyed while they wait for a lost rank.
  std::map<std::vector<Rank>, std::vector<CommunicatorHandle>> communicators_;
};

}  // namespace rehearse
