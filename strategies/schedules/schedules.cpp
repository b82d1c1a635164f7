// The table, and what each schedule refuses.
#include "strategies/schedules/schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "strategies/schedules/orders.hpp"

namespace rehearse {

namespace {

using Refusal = std::optional<std::string>;

Refusal any_shape(const PipelineShape&) { return std::nullopt; }

// Megatron's rule: a group of p micro-batches fills the pipeline before its next chunk begins.
Refusal interleaved_refusal(const PipelineShape& shape) {
  if (shape.microbatches % shape.ranks == 0) return std::nullopt;
  return fmt::format("{} ranks do not divide {} micro-batches", shape.ranks, shape.microbatches);
}

// PyTorch's rule: rounds of m / p, and as many micro-batches in each.
Refusal interleaved_zero_bubble_refusal(const PipelineShape& shape) {
  const std::size_t rounds = std::max<std::size_t>(1, shape.microbatches / shape.ranks);
  if (shape.chunks == 1 || shape.microbatches % rounds == 0) return std::nullopt;
  return fmt::format("{} micro-batches on {} ranks are {} rounds, which do not divide {}",
                     shape.microbatches, shape.ranks, rounds, shape.microbatches);
}

Refusal dual_pipe_v_refusal(const PipelineShape& shape) {
  if (shape.microbatches >= 2 * shape.ranks) return std::nullopt;
  return fmt::format("{} ranks × 2 chunks = {} stages need as many micro-batches, not {}",
                     shape.ranks, 2 * shape.ranks, shape.microbatches);
}

constexpr std::array table{
    ScheduleKind{"none", "no pipeline: a micro-batch goes forward and back before the next begins",
                 0, any_shape, make_no_pipeline},
    ScheduleKind{"GPipe", "all micro-batches forward, then all backward", 1, any_shape, make_gpipe},
    ScheduleKind{"1F1B", "one forward, one backward: at most p micro-batches in flight", 1,
                 any_shape, make_one_f_one_b},
    ScheduleKind{"Interleaved1F1B", "1F1B over several chunks a rank: a shorter bubble", 0,
                 interleaved_refusal, make_interleaved},
    ScheduleKind{"LoopedBFS", "all micro-batches on one chunk before the next", 0, any_shape,
                 make_looped_bfs},
    ScheduleKind{"ZBH1", "1F1B with the backward of the weights put off into the bubble", 1,
                 any_shape, make_zb_h1},
    ScheduleKind{"InterleavedZeroBubble", "ZBH1 over several chunks a rank", 0,
                 interleaved_zero_bubble_refusal, make_interleaved_zero_bubble},
    ScheduleKind{"ZBVZeroBubble", "two chunks a rank, laid out as a V: no bubble when F = I = W", 2,
                 any_shape, make_zbv},
    ScheduleKind{"DualPipeV", "a V whose forwards run beside backwards of its other arm", 2,
                 dual_pipe_v_refusal, make_dual_pipe_v},
};

// "ZB-H1" and "zbh1" are the same to a reader.
std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (c != '-') letters += 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return letters;
}

}  // namespace

std::span<const ScheduleKind> schedules() { return table; }

const ScheduleKind& schedule_kind(std::string_view name) {
  std::vector<std::string> names;
  for (const ScheduleKind& candidate : table) {
    if (candidate.name == name) return candidate;
    names.emplace_back(candidate.name);
  }
  for (const ScheduleKind& candidate : table)
    if (plain(candidate.name) == plain(name)) return candidate;
  const std::string hint = did_you_mean(name, names);
  throw InputError(
      fmt::format("unknown schedule '{}'{}", name,
                  hint.empty() ? fmt::format("; one of {}", fmt::join(names, ", ")) : hint));
}

std::optional<std::string> refusal(const ScheduleKind& kind, const PipelineShape& shape) {
  if (shape.ranks == 0) return "a pipeline of 0 ranks does nothing";
  if (shape.microbatches == 0) return "a step of 0 micro-batches does nothing";
  if (shape.chunks == 0) return "ranks with 0 chunks do nothing";
  if (kind.chunks == 1 && shape.chunks != 1)
    return fmt::format("each rank holds 1 chunk, not {}; Interleaved1F1B holds several",
                       shape.chunks);
  if (kind.chunks != 0 && shape.chunks != kind.chunks)
    return fmt::format("each rank holds exactly {} chunks, not {}", kind.chunks, shape.chunks);
  // 2 GiB of actions: no run has so many, and a typing error should not take all memory.
  constexpr std::size_t most = std::size_t{1} << 27;
  if (shape.ranks > most || shape.microbatches > most || shape.chunks > most ||
      shape.ranks * shape.chunks > most || shape.ranks * shape.chunks * shape.microbatches > most)
    return fmt::format("{} ranks × {} chunks × {} micro-batches are more than {}", shape.ranks,
                       shape.chunks, shape.microbatches, most);
  return kind.refusal(shape);
}

Schedule make_schedule(std::string_view name, std::size_t ranks, std::size_t microbatches,
                       std::size_t chunks_per_rank) {
  const ScheduleKind& kind = schedule_kind(name);
  const PipelineShape shape{ranks, microbatches, chunks_per_rank};
  if (const Refusal reason = refusal(kind, shape))
    throw InputError(fmt::format("schedule {}: {}", kind.name, *reason));
  return kind.make(shape);
}

Schedule empty_schedule(const PipelineShape& shape, StagePlacement placement, std::size_t actions) {
  const std::size_t p = shape.ranks;
  ASSERT(p > 0 && (placement == StagePlacement::loop || shape.chunks == 2));
  Schedule schedule{.stages = static_cast<std::uint32_t>(p * shape.chunks),
                    .microbatches = static_cast<std::uint32_t>(shape.microbatches)};
  schedule.ranks.resize(p);
  for (ScheduleRow& row : schedule.ranks) row.reserve(actions * shape.chunks * shape.microbatches);
  schedule.rank_of.resize(schedule.stages);
  for (std::size_t stage = 0; stage < schedule.stages; ++stage)
    schedule.rank_of[stage] = static_cast<std::uint32_t>(
        placement == StagePlacement::v && stage >= p ? 2 * p - 1 - stage : stage % p);
  return schedule;
}

}  // namespace rehearse
