// What was remembered of exchanges and kernels together holds for kernels as planned only.
#include "strategies/lowering/merged_tapes.hpp"

#include <algorithm>

namespace rehearse {

// A collective whose groups are all alike, each within one class of ranks, and whose links only its
// own rank fills with exchanges beside the kernels: while there are none, it takes its remembered
// time whenever it runs.
bool MergedTapes::merges(std::uint32_t use) const {
  if (network_.use(plan_.uses[use]).entries.size() != 1) return false;
  constexpr auto beside =
      1u << static_cast<unsigned>(Lane::gradients) | 1u << static_cast<unsigned>(Lane::parameters);
  const std::vector<FoldedRanks::Group>& groups = folded_.traffic[use].groups;
  return std::all_of(groups.begin(), groups.end(), [](const FoldedRanks::Group& group) {
    return group.representatives.size() == 1 && !group.meets_others &&
           (group.lanes_met & ~beside) == 0;
  });
}

const std::vector<Stretch>& MergedTapes::of(const Tape& tape, std::size_t begin, std::size_t end,
                                            bool with_exchanges) {
  const auto [slot, is_new] = known_.try_emplace({&tape, begin, end, with_exchanges});
  std::vector<Stretch>& stretches = slot->second;
  if (!is_new) return stretches;
  for (std::size_t i = begin; i < end; ++i) {
    const TapeStep& step = tape.steps[i];
    const bool is_exchange = std::holds_alternative<Exchange>(plan_.pieces[step.piece].work);
    Time kernels;  // this one, or those beside the exchange
    for (std::size_t k = is_exchange ? 1 : 0; k <= step.beside; ++k)
      kernels += tape.steps[i + k].time;
    i += step.beside;
    if (is_exchange && !(with_exchanges && merges(step.use))) {
      stretches.push_back({.step = &step});
      if (step.beside == 0) continue;
      stretches.push_back(
          {.step = &step + 1, .is_merged = true, .is_whole = true, .time = kernels});
      for (std::size_t k = 1; k <= step.beside; ++k)
        stretches.back().kernels.push_back((&step + k)->time);
      continue;
    }
    if (stretches.empty() || !stretches.back().is_merged || stretches.back().is_whole)
      stretches.push_back({.step = &step, .is_merged = true});
    if (is_exchange) {
      add_exchange(stretches.back(), step, kernels);
      continue;
    }
    stretches.back().time += kernels;
    stretches.back().kernels.push_back(kernels);
  }
  return stretches;
}

// In a stretch nothing meets the exchange but the kernels beside it, so both take as long as alone.
void MergedTapes::add_exchange(Stretch& stretch, const TapeStep& step, Time kernels) const {
  const RememberedCollective& cost = network_.use(plan_.uses[step.use]).entries.front().cost;
  const auto dimension =
      static_cast<std::size_t>(std::get<Exchange>(plan_.pieces[step.piece].work).dimension);
  if (step.beside == 0) {
    stretch.time += cost.time;
    stretch.exchanged[dimension] += cost.time;
    return;
  }
  const StepNetwork::Beside& both = network_.beside(cost, kernels);
  const Time exposed = both.time - both.kernels;
  stretch.time += both.time;
  stretch.exchanged[dimension] += exposed;
  stretch.hidden[dimension] += cost.time - exposed;
}

}  // namespace rehearse
