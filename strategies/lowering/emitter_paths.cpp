// How exchanges and messages appear to the engine, and which of them become part of a block.
#include "strategies/lowering/emitter.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse {

// A collective whose groups are all alike, each within one representative, and whose links only its
// own rank fills with exchanges beside the kernels: while there are none, it takes its remembered
// time whenever it runs.
bool Emitter::merges(std::uint32_t use) const {
  if (costs_[use]->entries.size() != 1) return false;
  constexpr auto beside =
      1u << static_cast<unsigned>(Lane::gradients) | 1u << static_cast<unsigned>(Lane::parameters);
  const std::vector<FoldedRanks::Group>& groups = folded_.traffic[use].groups;
  return std::all_of(groups.begin(), groups.end(), [](const FoldedRanks::Group& group) {
    return group.representatives.size() == 1 && !group.meets_others &&
           (group.lanes_met & ~beside) == 0;
  });
}

const std::vector<Emitter::Block>& Emitter::blocks(const Tape& tape, std::size_t begin,
                                                   std::size_t end, bool with_exchanges) {
  const auto [slot, is_new] = blocks_.try_emplace({&tape, begin, end, with_exchanges});
  std::vector<Block>& blocks = slot->second;
  if (!is_new) return blocks;
  for (std::size_t i = begin; i < end; ++i) {
    const TapeStep& step = tape.steps[i];
    const auto* exchange = std::get_if<Exchange>(&plan_.pieces[step.piece].work);
    Time kernels;  // this one, or those beside the exchange
    for (std::size_t k = exchange == nullptr ? 0 : 1; k <= step.beside; ++k)
      kernels += tape.steps[i + k].time;
    i += step.beside;
    // Kernels of an imperfect machine take other times beside an exchange than those planned.
    const bool joins = with_exchanges && (step.beside == 0 || imperfections_.is_ideal());
    if (exchange != nullptr && !(joins && merges(step.use))) {
      blocks.push_back({.step = &step});
      if (step.beside == 0) continue;
      blocks.push_back({.step = &step + 1, .merged = true, .is_whole = true, .time = kernels});
      for (std::size_t k = 1; k <= step.beside; ++k)
        blocks.back().kernels.push_back((&step + k)->time);
      continue;
    }
    if (blocks.empty() || !blocks.back().merged || blocks.back().is_whole)
      blocks.push_back({.step = &step, .merged = true});
    if (exchange != nullptr) {
      add_exchange_to(blocks.back(), step, kernels);
      continue;
    }
    blocks.back().time += kernels;
    blocks.back().kernels.push_back(kernels);
  }
  return blocks;
}

// The transfers of a pipeline leave gaps, in which kernels beside it have the whole device; as one
// flow it takes its share of the device all the time.
void Emitter::note_beside_kernels(std::uint32_t use) {
  if (accelerator_of(network_.topology()).communication_share <= 0) return;
  for (const GroupFamily::Use::Entry& entry : costs_[use]->entries)
    step_.needs_transfers = step_.needs_transfers || entry.cost.is_pipelined;
}

// In a block nothing meets the exchange but the kernels beside it, so both take as long as alone.
void Emitter::add_exchange_to(Block& block, const TapeStep& step, Time kernels) {
  const RememberedCollective& cost = costs_[step.use]->entries.front().cost;
  const auto dimension =
      static_cast<std::size_t>(std::get<Exchange>(plan_.pieces[step.piece].work).dimension);
  if (step.beside == 0) {
    block.time += cost.time;
    block.exchanged[dimension] += cost.time;
    return;
  }
  note_beside_kernels(step.use);
  const StepNetwork::Beside& both = network_.beside(cost, kernels);
  const Time exposed = both.time - both.kernels;
  block.time += both.time;
  block.exchanged[dimension] += exposed;
  block.hidden[dimension] += cost.time - exposed;
}

void Emitter::add_exchange(std::uint32_t use, const FoldedRanks::Group& group, std::uint32_t number,
                           Lane lane, Label label) {
  const Stream stream = comm_lane(static_cast<std::size_t>(lane));
  if (options_.collectives == Collectives::remembered) {
    const Bytes wire = costs_[use]->entries[group.entry].cost.wire;
    step_.program.add_transfer(
        stream, label, {.connection = exchange_connection(use, number), .size = wire, .wire = wire},
        after_);
    return;
  }
  const auto buffer = [&](std::size_t which) {
    return Slice{static_cast<Buffer>(2 * use + which), Bytes{0}, plan_.uses[use].size};
  };
  const RememberedCollective& cost = costs_[use]->entries[group.entry].cost;
  Collective work{.kind = plan_.uses[use].kind,
                  .data = buffer(0),
                  .result = buffer(1),
                  .algorithm = std::string(cost.algorithm),
                  .protocol = cost.protocol};
  for (const std::uint32_t representative : group.representatives)
    work.group.push_back(folded_.representatives[representative].rank);
  step_.program.add_collective(stream, label, std::move(work), after_);
}

void Emitter::add_message(std::uint32_t traffic, std::uint32_t number, Lane lane, Label label,
                          Bytes size) {
  const Stream stream = comm_lane(static_cast<std::size_t>(lane));
  const ConnectionId way = message_connection(traffic, number, size);
  if (options_.collectives == Collectives::remembered) {
    const Bytes wire{size.count() / LoadedLink::whole};
    step_.program.add_transfer(stream, label, {.connection = way, .size = wire, .wire = wire},
                               after_);
    return;
  }
  // A buffer for each direction, after those of the collectives.
  const auto buffer = static_cast<Buffer>(2 * plan_.uses.size() + (lane == Lane::backward ? 2 : 0));
  const double payload = message_protocol(network_.topology()).payload;
  step_.program.add_transfer(
      stream, label,
      {.connection = way,
       .source_buffer = buffer,
       .target_buffer = static_cast<Buffer>(index(buffer) + 1),
       .size = size,
       .wire = Bytes{static_cast<std::int64_t>(static_cast<double>(size.count()) / payload)}},
      after_);
}

double Emitter::network_factor(Rank first) const {
  return imperfections_.perturbs_exchanges() ? imperfections_.exchange(first, exchanges_[place_])
                                             : 1;
}

// Without network jitter a connection serves all exchanges of its group; else each has its own.
ConnectionId Emitter::exchange_connection(std::uint32_t use, std::uint32_t number) {
  ConnectionId& known = connections_[use][number];
  if (known != no_connection && !imperfections_.perturbs_exchanges()) return known;
  const FoldedRanks::Group& group = folded_.traffic[use].groups[number];
  const RememberedCollective& cost = costs_[use]->entries[group.entry].cost;
  std::vector<Rank> ranks;
  for (const std::uint32_t representative : group.representatives)
    ranks.push_back(folded_.representatives[representative].rank);
  const double factor = network_factor(ranks.front());
  Connection connection = connection_of(cost, std::move(ranks));
  connection.limit = connection.limit / factor;
  known = step_.program.connect(std::move(connection));
  FoldedPath& path = step_.program.folded.emplace_back(path_of(cost));
  path.crossings = group.crossings;
  path.stands_for = group.stands_for;
  path.latency = Time::round(Seconds{path.latency.seconds().count() * factor});
  path.gap = Time::round(Seconds{path.gap.seconds().count() * factor});
  return known;
}

ConnectionId Emitter::message_connection(std::uint32_t traffic, std::uint32_t number, Bytes size) {
  const auto [slot, is_new] = messages_.try_emplace({traffic, number, size.count()});
  if (!is_new && !imperfections_.perturbs_exchanges()) return slot->second;
  const FoldedRanks::Group& group = folded_.traffic[traffic].groups[number];
  if (options_.collectives == Collectives::whole) {
    const auto protocol = message_protocol_number(network_.topology());
    return slot->second = step_.program.connect(
               {.source = folded_.representatives[group.representatives[0]].rank,
                .target = folded_.representatives[group.representatives[1]].rank,
                .protocol = protocol});
  }
  const MessagePath path = network_.path(handovers_[traffic - plan_.uses.size()], group.entry);
  Connection connection{.source = folded_.representatives[group.representatives[0]].rank,
                        .target = folded_.representatives[group.representatives[1]].rank};
  const Bytes wire{size.count() / LoadedLink::whole};
  const Seconds moving = size / path.rate;
  const double factor = network_factor(connection.source);
  Time latency = path.latency;
  if (wire == Bytes{0}) latency += Time::round(moving);
  if (wire > Bytes{0}) connection.limit = wire / moving / factor;
  if (factor != 1) latency = Time::round(Seconds{latency.seconds().count() * factor});
  slot->second = step_.program.connect(std::move(connection));
  step_.program.folded.push_back({group.crossings, latency, group.stands_for});
  return slot->second;
}

StepProgram Emitter::finish() {
  if (options_.collectives == Collectives::whole)
    step_.program.protocols = network_.topology().protocols;
  if (options_.count_links) step_.link_bytes = count_.on_links(plan_, network_);
  for (const FoldedRanks::GroupSet& traffic : folded_.traffic)
    for (const FoldedRanks::Group& group : traffic.groups)
      step_.needs_transfers = step_.needs_transfers || group.meets_others || group.lanes_met != 0;
  const Schedule& schedule = plan_.schedule;
  for (std::size_t a = 0; a < step_.roles.size(); ++a) {
    Role& role = step_.roles[a];
    std::string& name = role.name;
    for (std::uint32_t s = 0; s < schedule.stages; ++s)
      if (schedule.rank_of[s] == role.pipeline_rank)
        name += fmt::format("{}{}",
                            name.empty() ? (schedule.stages > 1 ? "stage " : "all ranks") : ", ",
                            schedule.stages > 1 ? std::to_string(s) : "");
    // Ranks of one stage that are not alike differ in where they stand.
    const std::uint32_t place = role.pipeline_rank;
    if (folded_.begin[place + 1] - folded_.begin[place] > 1)
      name += fmt::format(" as rank {}", index(role.rank));
  }
  return std::move(step_);
}

}  // namespace rehearse
