// What is one rank's own is drawn once, at construction; the rest when it is asked for.
#include "strategies/plan/imperfections.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/bits.hpp"
#include "sim/base/quantity_text.hpp"
#include "strategies/plan/draws.hpp"

namespace rehearse {

namespace {

bool contains(const std::vector<std::size_t>& list, std::size_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

Imperfections::Imperfections(const Imperfection& imperfection, std::size_t world)
    : imperfection_{imperfection} {
  const bool has_pauses = imperfection_.pause_length > Time{} && imperfection_.pause_every > Time{};
  const bool has_slow = !imperfection_.slow_ranks.empty() && imperfection_.slow_rank_factor != 1;
  perturbs_kernels_ =
      has_pauses || has_slow || imperfection_.kernel_jitter > 0 || imperfection_.rank_jitter > 0;
  if (!perturbs_kernels_) return;
  ranks_.resize(world);
  for (std::size_t r = 0; r < world; ++r) {
    Rates& rates = ranks_[r];
    if (contains(imperfection_.slow_ranks, r)) rates.factor = imperfection_.slow_rank_factor;
    if (imperfection_.rank_jitter > 0)
      rates.factor *= jitter_draw(imperfection_.distribution, imperfection_.rank_jitter,
                                  {imperfection_.seed, DrawFor::rank, r});
    rates.pauses =
        has_pauses && (imperfection_.pause_ranks.empty() || contains(imperfection_.pause_ranks, r));
    if (rates.pauses)
      rates.phase = Time::round(Seconds{imperfection_.pause_every.seconds().count() *
                                        uniform_draw({imperfection_.seed, DrawFor::pause,
                                                      imperfection_.pause_together ? 0 : r})});
    colours_.push_back(bits_of(rates.factor) * 2 + rates.pauses);
  }
}

bool Imperfections::distinguishes_ranks() const {
  return imperfection_.kernel_jitter > 0 || imperfection_.rank_jitter > 0 || perturbs_exchanges() ||
         (imperfection_.pause_length > Time{} && !imperfection_.pause_together);
}

bool Imperfections::perturbs(Rank rank) const {
  return perturbs_kernels_ && (imperfection_.kernel_jitter > 0 || ranks_[index(rank)] != Rates{});
}

Time Imperfections::kernel(Rank rank, std::uint64_t number, Time planned) const {
  double factor = ranks_[index(rank)].factor;
  if (imperfection_.kernel_jitter > 0)
    factor *= jitter_draw(imperfection_.distribution, imperfection_.kernel_jitter,
                          {imperfection_.seed, DrawFor::kernel, index(rank), number});
  return factor == 1 ? planned : Time::round(Seconds{planned.seconds().count() * factor});
}

Time Imperfections::pauses(Rank rank, Time before, Time after) const {
  const Rates& rates = ranks_[index(rank)];
  if (!rates.pauses) return {};
  const std::int64_t every = imperfection_.pause_every.ps();
  const std::int64_t passed =
      (rates.phase + after).ps() / every - (rates.phase + before).ps() / every;
  return passed * imperfection_.pause_length;
}

double Imperfections::exchange(Rank first, std::uint64_t number) const {
  return 1 + imperfection_.network_jitter *
                 exponential_draw({imperfection_.seed, DrawFor::exchange, index(first), number});
}

std::string describe(const Imperfection& told) {
  std::vector<std::string> words;
  const auto ranks = [](const std::vector<std::size_t>& list) {
    return fmt::format("{} {}", list.size() == 1 ? "rank" : "ranks", fmt::join(list, ", "));
  };
  const auto jitter = [&](double variation, std::string_view what) {
    if (variation > 0)
      words.push_back(fmt::format("jitter of {} {:.3g} % ({})", what, 100 * variation,
                                  told.distribution == Jitter::gamma ? "gamma" : "lognormal"));
  };
  if (!told.slow_ranks.empty())
    words.push_back(fmt::format("kernels of {} take {} times as long", ranks(told.slow_ranks),
                                told.slow_rank_factor));
  if (!told.slow_cables.empty())
    words.push_back(fmt::format("cable of {}: bandwidth / {}, latency + {}",
                                ranks(told.slow_cables), told.slow_cable_factor,
                                to_text(told.slow_cable_latency)));
  jitter(told.kernel_jitter, "each kernel");
  jitter(told.rank_jitter, "each rank");
  if (told.network_jitter > 0)
    words.push_back(
        fmt::format("exchanges take {:.3g} % longer on average", 100 * told.network_jitter));
  if (told.pause_length > Time{})
    words.push_back(fmt::format("{} pause {} after every {} of kernels, {}",
                                told.pause_ranks.empty() ? "all ranks" : ranks(told.pause_ranks),
                                to_text(told.pause_length), to_text(told.pause_every),
                                told.pause_together ? "together" : "each at its own time"));
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace rehearse
