// What the files of the schedules define, one function each, and the few lines they share.
#pragma once

#include "strategies/schedules/schedules.hpp"

namespace rehearse {

Schedule make_no_pipeline(const PipelineShape&);
Schedule make_gpipe(const PipelineShape&);
Schedule make_one_f_one_b(const PipelineShape&);
Schedule make_interleaved(const PipelineShape&);
Schedule make_looped_bfs(const PipelineShape&);
Schedule make_zb_h1(const PipelineShape&);
Schedule make_interleaved_zero_bubble(const PipelineShape&);
Schedule make_zbv(const PipelineShape&);
Schedule make_dual_pipe_v(const PipelineShape&);

/// loop: rank r holds stages r, r + p, r + 2p, …; v: stages r and 2p-1-r, there and back.
enum class StagePlacement : std::uint8_t { loop, v };

/// No action yet, but room for `actions` on every stage and micro-batch.
Schedule empty_schedule(const PipelineShape&, StagePlacement, std::size_t actions);

inline void add(ScheduleRow& row, std::size_t stage, ActionKind kind, std::size_t microbatch) {
  row.emplace_back(
      Action{static_cast<std::uint32_t>(stage), kind, static_cast<std::uint32_t>(microbatch)});
}

/// Walks as a rank of an interleaved schedule does over its chunks: `group` micro-batches on one
/// chunk, then the same on the next; after the last chunk the next micro-batches.
class InterleavedWalk {
 public:
  InterleavedWalk(const PipelineShape& shape, std::size_t group, std::size_t rank)
      : ranks_{shape.ranks}, chunks_{shape.chunks}, group_{group}, rank_{rank} {}

  void add_forward(ScheduleRow& row) {
    add(row, chunk_ * ranks_ + rank_, ActionKind::forward, first_ + done_);
    go_on();
  }
  /// Backward begins with the last chunk.
  void add_backward(ScheduleRow& row, ActionKind kind) {
    add(row, (chunks_ - 1 - chunk_) * ranks_ + rank_, kind, first_ + done_);
    go_on();
  }

 private:
  void go_on() {
    if (++done_ < group_) return;
    done_ = 0;
    if (++chunk_ < chunks_) return;
    chunk_ = 0;
    first_ += group_;
  }

  std::size_t ranks_, chunks_, group_, rank_;
  std::size_t chunk_ = 0, first_ = 0, done_ = 0;
};

}  // namespace rehearse
