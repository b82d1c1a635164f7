// Trying them all. A candidate whose simulation would be out of proportion is left out of `auto`,
// and said so; asked for by name it is simulated whatever it takes.
#include "strategies/collectives/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "sim/base/error.hpp"
#include "sim/base/parallel.hpp"

namespace rehearse {

namespace {

// Half a second on one core, for every size and protocol: `auto` would rather answer.
constexpr std::uint64_t too_many_transfers = 2'000'000;
// At some 120 bytes each this is what a large workstation holds.
constexpr std::uint64_t most_transfers_at_all = 100'000'000;

std::vector<std::uint16_t> protocols_of(const Topology& topology,
                                        std::span<const std::string> names) {
  std::vector<std::string> known;
  for (const Protocol& protocol : topology.protocols) known.push_back(protocol.name);
  if (known.empty()) known.push_back(Protocol{}.name);
  std::vector<std::uint16_t> protocols;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      throw InputError(fmt::format("the machine has no protocol '{}'{}; it has {}", name,
                                   did_you_mean(name, known), fmt::join(known, ", ")));
    protocols.push_back(static_cast<std::uint16_t>(found - known.begin()));
  }
  if (names.empty())
    for (std::uint16_t p = 0; p < known.size(); ++p) protocols.push_back(p);
  return protocols;
}

}  // namespace

CollectiveChooser::CollectiveChooser(const CollectiveShape& shape, Routing& routing,
                                     const Wish& wish)
    : topology_{routing.topology()},
      bounds_{shape.kind, shape.group, topology_, shape.root},
      protocols_{protocols_of(topology_, wish.protocols)},
      kind_{shape.kind},
      version_{wish.version > 0 ? wish.version : topology_.library.version},
      named_{!wish.algorithms.empty()},
      threads_{wish.detail == Detail::folded ? wish.threads : 1} {
  if (!topology_.library.name.empty() && shape.group.size() > 1)
    graph_ = nccl_graph(shape, topology_);
  std::vector<const Algorithm*> tried;
  for (const std::string& name : wish.algorithms) tried.push_back(&algorithm(name));
  for (const Algorithm& how : algorithms()) {
    if (named_) break;
    if (const auto refusal = how.refusal(shape, topology_))
      left_out_.push_back({how.name, *refusal});
    else if (!library_has(topology_.library, how.name))
      left_out_.push_back({how.name, how.passed_by.empty()
                                         ? topology_.library.name + " has none such; ask by name"
                                         : std::string(how.passed_by)});
    else
      tried.push_back(&how);
  }
  ASSERT(!tried.empty());  // ring and pairwise between them do every collective
  for (const Algorithm* how : tried)
    if (std::none_of(protocols_.begin(), protocols_.end(),
                     [&](std::uint16_t p) { return speaks(*how, p); }) &&
        named_)
      throw InputError(fmt::format("algorithm '{}' speaks the protocol 'simple' only", how->name));
  rehearsals_.resize(tried.size());
  for_each_in_parallel(tried.size(), threads_, [&](std::size_t i) {
    std::optional<Routing> own;  // a Routing remembers, so threads do not share one
    if (threads_ > 1) own.emplace(topology_);
    rehearsals_[i] =
        std::make_unique<CollectiveRehearsal>(*tried[i], shape, own ? *own : routing, wish.detail);
  });
}

std::vector<Candidate> CollectiveChooser::candidates(Bytes size) {
  std::vector<Candidate> candidates;
  for (const auto& rehearsal : rehearsals_) {
    if (too_long(*rehearsal, size)) {
      leave_out(*rehearsal, size);
      continue;
    }
    if (rehearsal->most_transfers(size) > most_transfers_at_all)
      throw InputError(fmt::format(
          "'{}' has {} transfers at {} bytes, which would take about {} GB of memory; try fewer "
          "ranks or another algorithm",
          rehearsal->algorithm().name, rehearsal->most_transfers(size), size.count(),
          rehearsal->most_transfers(size) * 120 / 1'000'000'000));
    for (const std::uint16_t protocol : protocols_) {
      if (speaks(rehearsal->algorithm(), protocol))
        candidates.push_back({rehearsal->algorithm().name, protocol, {}});
    }
  }
  return candidates;
}

std::vector<Candidate> CollectiveChooser::at(Bytes size, Executor& engine) {
  std::vector<Candidate> candidates = this->candidates(size);
  for_each_in_parallel(candidates.size(), threads_,
                       [&](std::size_t i) { candidates[i] = again(candidates[i], size, engine); });
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.result.time < b.result.time; });
  if (const auto first = taken(candidates, size))
    std::rotate(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(*first),
                candidates.begin() + static_cast<std::ptrdiff_t>(*first) + 1);
  return candidates;
}

std::optional<std::size_t> CollectiveChooser::taken(std::span<const Candidate> all,
                                                    Bytes size) const {
  if (!graph_) return std::nullopt;
  std::optional<std::size_t> first;
  std::tuple<double, std::string_view, std::uint16_t> least;  // a tie by name, not by order
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto time =
        nccl_time(version_, *graph_, kind_, all[i].algorithm, protocol_name(all[i].protocol), size);
    if (!time) continue;
    const std::tuple here{*time, all[i].algorithm, all[i].protocol};
    if (first && least < here) continue;
    least = here;
    first = i;
  }
  return first;
}

// None can be quicker than the link that carries most of its bytes, nor than its longest chain of
// transfers: who could not win by that is not simulated. Of several that are equally quick the
// first is taken, as in `at`.
Candidate CollectiveChooser::best(Bytes size, Executor& engine) {
  const std::vector<Candidate> all = candidates(size);
  if (const auto first = taken(all, size)) return again(all[*first], size, engine);
  struct Hope {
    double least;  // seconds
    std::size_t number;
  };
  std::vector<Hope> hopes;
  const Time second = Time::round(Seconds{1});
  for (std::size_t i = 0; i < all.size() && all.size() > 1; ++i) {
    const CollectiveRehearsal& how = rehearsal(all[i].algorithm);
    hopes.push_back({std::max(how.busiest(size, all[i].protocol, second).load,
                              how.least(size, all[i].protocol).time.seconds().count()),
                     i});
  }
  if (hopes.empty()) hopes.push_back({0, 0});
  std::stable_sort(hopes.begin(), hopes.end(),
                   [](const Hope& a, const Hope& b) { return a.least < b.least; });
  std::optional<std::size_t> first;
  Candidate best;
  for (const Hope& hope : hopes) {
    // A rounding is no reason to leave somebody out.
    if (first && hope.least > best.result.time.seconds().count() * (1 + 1e-6)) break;
    const Candidate tried = again(all[hope.number], size, engine);
    if (first && std::tuple{best.result.time, *first} < std::tuple{tried.result.time, hope.number})
      continue;
    best = tried;
    first = hope.number;
  }
  ASSERT(first);
  return best;
}

Candidate CollectiveChooser::again(const Candidate& candidate, Bytes size, Executor& engine) const {
  const CollectiveResult result =
      rehearsal(candidate.algorithm).run(size, engine, candidate.protocol);
  bounds_.check(size, result.time);
  return {candidate.algorithm, candidate.protocol, result};
}

bool CollectiveChooser::speaks(const Algorithm& how, std::uint16_t protocol) const {
  return !how.simple_only || protocol_name(protocol) == "simple";
}

BusiestLink CollectiveChooser::busiest(const Candidate& candidate, Bytes size) const {
  return rehearsal(candidate.algorithm).busiest(size, candidate.protocol, candidate.result.time);
}

CollectiveRehearsal& CollectiveChooser::rehearsal(std::string_view algorithm) const {
  const auto found = std::find_if(rehearsals_.begin(), rehearsals_.end(),
                                  [&](const auto& r) { return r->algorithm().name == algorithm; });
  ASSERT(found != rehearsals_.end());
  return **found;
}

bool CollectiveChooser::too_long(const CollectiveRehearsal& rehearsal, Bytes size) const {
  return !named_ && rehearsal.most_transfers(size) > too_many_transfers;
}

void CollectiveChooser::leave_out(const CollectiveRehearsal& rehearsal, Bytes size) {
  const std::string_view name = rehearsal.algorithm().name;
  for (const LeftOut& known : left_out_)
    if (known.algorithm == name) return;
  left_out_.push_back({name, fmt::format("up to {} transfers from {} bytes on; ask for it by name",
                                         rehearsal.most_transfers(size), size.count())});
}

const std::string& CollectiveChooser::protocol_name(std::uint16_t protocol) const {
  static const std::string plain = Protocol{}.name;
  return topology_.protocols.empty() ? plain : topology_.protocols[protocol].name;
}

}  // namespace rehearse
