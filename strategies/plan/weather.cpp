// What is one rank's own is drawn once, when the weather is made; the rest when it is asked for.
#include "strategies/plan/weather.hpp"

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

Weather::Weather(const Imperfection& imperfection, std::size_t world) : told_{imperfection} {
  const bool has_pauses = told_.pause_length > Time{} && told_.pause_every > Time{};
  const bool has_slow = !told_.slow_ranks.empty() && told_.slow_rank_factor != 1;
  touches_kernels_ = has_pauses || has_slow || told_.kernel_jitter > 0 || told_.rank_jitter > 0;
  if (!touches_kernels_) return;
  ranks_.resize(world);
  for (std::size_t r = 0; r < world; ++r) {
    Rates& rates = ranks_[r];
    if (contains(told_.slow_ranks, r)) rates.factor = told_.slow_rank_factor;
    if (told_.rank_jitter > 0)
      rates.factor *=
          jitter_draw(told_.distribution, told_.rank_jitter, {told_.seed, DrawFor::rank, r});
    rates.pauses = has_pauses && (told_.pause_ranks.empty() || contains(told_.pause_ranks, r));
    if (rates.pauses)
      rates.phase = Time::round(
          Seconds{told_.pause_every.seconds().count() *
                  uniform_draw({told_.seed, DrawFor::pause, told_.pause_together ? 0 : r})});
    colours_.push_back(bits_of(rates.factor) * 2 + rates.pauses);
  }
}

bool Weather::tells_ranks_apart() const {
  return told_.kernel_jitter > 0 || told_.rank_jitter > 0 || shakes_exchanges() ||
         (told_.pause_length > Time{} && !told_.pause_together);
}

bool Weather::touches(Rank rank) const {
  return touches_kernels_ && (told_.kernel_jitter > 0 || ranks_[index(rank)] != Rates{});
}

Time Weather::kernel(Rank rank, std::uint64_t number, Time planned) const {
  double factor = ranks_[index(rank)].factor;
  if (told_.kernel_jitter > 0)
    factor *= jitter_draw(told_.distribution, told_.kernel_jitter,
                          {told_.seed, DrawFor::kernel, index(rank), number});
  return factor == 1 ? planned : Time::round(Seconds{planned.seconds().count() * factor});
}

Time Weather::pauses(Rank rank, Time before, Time after) const {
  const Rates& rates = ranks_[index(rank)];
  if (!rates.pauses) return {};
  const std::int64_t every = told_.pause_every.ps();
  const std::int64_t passed =
      (rates.phase + after).ps() / every - (rates.phase + before).ps() / every;
  return passed * told_.pause_length;
}

double Weather::exchange(Rank first, std::uint64_t number) const {
  return 1 + told_.network_jitter *
                 exponential_draw({told_.seed, DrawFor::exchange, index(first), number});
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
