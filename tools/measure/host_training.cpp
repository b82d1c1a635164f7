// Sums go slot by slot, whoever holds them: threads and processes tell the same bits.
#include "tools/measure/host_training.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "sim/base/error.hpp"
#include "strategies/binding/checkpoint.hpp"
#include "tools/output/output_file.hpp"

namespace rehearse {

namespace {

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError({path}, "cannot be read; --resume takes a file of --checkpoint");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

HostTraining::HostTraining(const BoundStep& step, const Workload& workload,
                           const TrainingNumbers& numbers, const HostRanks& ranks,
                           RankMemory memory, std::function<void()> settle)
    : step_{step},
      workload_{workload},
      numbers_{numbers},
      ranks_{ranks},
      memory_{std::move(memory)},
      settle_{std::move(settle)} {}

RankMemory memory_of_training(const BoundStep& step, const HostRanks& ranks, HostMemory& memory) {
  for (const Feed& feed : step.feeds) memory.cover(feed.rank, feed.slice);
  for (const ParameterPart& part : step.copies) memory.cover(part.rank, part.slice);
  for (const auto& [rank, slice] : step.persistent) memory.cover(rank, slice);
  for (const auto& [rank, slice] : step.states) memory.cover(rank, slice);
  for (const BoundStep::LossSlot& slot : step.losses) memory.cover(slot.rank, slot.slice);
  return [&](Rank rank, const Slice& slice) {
    return ranks.is_here(rank) ? memory.at(rank, slice) : std::span<std::byte>{};
  };
}

std::uint64_t HostTraining::begin(const std::string& checkpoint) {
  fill_parameters(step_, numbers_, memory_);
  settle_();
  if (checkpoint.empty()) return 0;
  // Other hosts need not see the first one's disk.
  const std::string bytes = ranks_.share(ranks_.is_first() ? read_bytes(checkpoint) : "");
  const std::uint64_t steps = restore(step_, bytes, checkpoint, memory_);
  settle_();
  return steps;
}

void HostTraining::fill_batch(std::uint64_t number) {
  rehearse::fill_batch(step_, workload_, numbers_, number, memory_);
  settle_();
}

HostTraining::Told HostTraining::tell(bool stops) const {
  const std::optional<ScaledLoss> scaled = read_scaled_loss(step_, memory_);
  std::string mine = fmt::format("{:d} {} {:d}", stops, scaled ? scaled->scale : 0,
                                 scaled.has_value() && scaled->skipped);
  for (const BoundStep::LossSlot& slot : step_.losses) {
    const std::span<const std::byte> bytes = memory_(slot.rank, slot.slice);
    if (bytes.empty()) continue;
    double sum = 0;
    std::memcpy(&sum, bytes.data(), sizeof sum);
    mine += fmt::format(" {} {}", slot.step, sum);
  }
  settle_();
  Told told{.losses = std::vector<double>(step_.steps)};
  for (const std::string& text : ranks_.gather(mine)) {
    std::istringstream words(text);
    std::string stop, scale, skipped, step, sum;
    words >> stop >> scale >> skipped;
    told.stops = told.stops || stop == "1";
    if (scale != "0") told.scaled = ScaledLoss{std::stod(scale), skipped == "1"};
    while (words >> step >> sum)
      told.losses[std::stoul(step)] += std::stod(sum) / static_cast<double>(step_.loss_count);
  }
  return told;
}

std::string HostTraining::kept() const {
  std::string bytes;
  for (const auto& [rank, slice] : step_.persistent) {
    const std::span<const std::byte> part = memory_(rank, slice);
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  settle_();
  return bytes;
}

void HostTraining::put_back(const std::string& bytes) {
  std::size_t at = 0;
  for (const auto& [rank, slice] : step_.persistent) {
    const std::span<std::byte> part = memory_(rank, slice);
    if (!part.empty()) std::memcpy(part.data(), bytes.data() + at, part.size());
    at += part.size();
  }
  settle_();
}

void HostTraining::save(const std::string& path, std::uint64_t steps_done) const {
  if (!ranks_.are_processes()) {
    const std::string bytes = checkpoint_of(step_, steps_done, memory_);
    settle_();
    return write_output(path, bytes);
  }
  std::vector<std::string> parts = ranks_.collect(kept());
  if (!ranks_.is_first()) return;
  // The blocks of each rank lie one behind the other, in the order in which they are asked for.
  std::vector<std::size_t> taken(parts.size());
  const RankMemory memory = [&](Rank rank, const Slice& slice) {
    const std::size_t begin = taken[index(rank)];
    taken[index(rank)] += static_cast<std::size_t>(slice.size.count());
    return std::as_writable_bytes(std::span{parts[index(rank)]})
        .subspan(begin, static_cast<std::size_t>(slice.size.count()));
  };
  write_output(path, checkpoint_of(step_, steps_done, memory));
}

}  // namespace rehearse
