// Coordinates by mixed radix, and the groups that follow from them.
#include "strategies/placement/placement.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

constexpr std::array<std::string_view, dimension_count> short_names{"tp", "cp", "ep", "dp", "pp"};

// The dimensions but ep from fast to slow; what the order leaves out has size 1 and may go last.
std::vector<Dimension> ordered(std::string_view whole) {
  std::vector<Dimension> dimensions;
  const auto add = [&](std::string_view word) {
    const auto name = std::find(short_names.begin(), short_names.end(), word);
    ASSERT(name != short_names.end());
    const auto dimension = static_cast<Dimension>(name - short_names.begin());
    if (dimension != Dimension::expert) dimensions.push_back(dimension);
  };
  std::string_view order = whole;
  while (!order.empty()) {
    const std::size_t length = std::min(order.find('-'), order.size());
    add(order.substr(0, length));
    order.remove_prefix(std::min(length + 1, order.size()));
  }
  for (const std::string_view name : short_names)
    if (name != "ep" && whole.find(name) == std::string_view::npos) add(name);
  ASSERT(dimensions.size() == dimension_count - 1);
  return dimensions;
}

Rank rank_of(std::size_t number) { return static_cast<Rank>(number); }

}  // namespace

Placement::Placement(const Parallelism& p, std::size_t world) : world_{world} {
  const std::size_t replicas = world / (p.tensor * p.pipeline);  // dp × cp
  ASSERT(replicas * p.tensor * p.pipeline == world && replicas % p.context == 0);
  steps_[at(Dimension::tensor)].size = p.tensor;
  steps_[at(Dimension::context)].size = p.context;
  steps_[at(Dimension::data)].size = replicas / p.context;
  steps_[at(Dimension::pipeline)].size = p.pipeline;
  std::size_t stride = 1;
  inner_ = outer_ = Dimension::tensor;
  for (const Dimension dimension : ordered(p.order)) {
    Step& here = steps_[at(dimension)];
    here.stride = std::exchange(stride, stride * here.size);
    if (dimension == Dimension::context || dimension == Dimension::data)
      inner_ = std::exchange(outer_, dimension);
  }
  ASSERT(stride == world && replicas % p.expert == 0);
  // Experts lie as the order says of ep and dp: neighbours hold different ones, or the same.
  const bool is_fast = p.order.find("ep") < p.order.find("dp");
  const std::size_t alike = replicas / p.expert;
  steps_[at(Dimension::expert)] = {p.expert, is_fast ? 1 : alike};
  const std::size_t shards = p.zero_shard_ranks == 0 ? replicas : p.zero_shard_ranks;
  ASSERT(replicas % shards == 0);
  cuts_[at(Replicas::all)] = {replicas, 1};
  cuts_[at(Replicas::experts)] = {alike, is_fast ? p.expert : 1};
  cuts_[at(Replicas::shards)] = {shards, 1};
  cuts_[at(Replicas::copies)] = {replicas / shards, shards};
}

// The rank's place among those that differ from it in dp and cp only.
std::size_t Placement::replica(std::size_t rank) const {
  return step(inner_).of(rank) + step(inner_).size * step(outer_).of(rank);
}

Coordinates Placement::coordinates(Rank rank) const {
  const std::size_t number = index(rank);
  ASSERT(number < world_);
  const auto of = [&](Dimension d) { return step(d).of(number); };
  return {.tensor = of(Dimension::tensor),
          .context = of(Dimension::context),
          .expert = step(Dimension::expert).of(replica(number)),
          .data = of(Dimension::data),
          .pipeline = of(Dimension::pipeline)};
}

Rank Placement::rank(const Coordinates& c) const {
  const auto part = [&](Dimension d, std::size_t coordinate) {
    ASSERT(coordinate < step(d).size);
    return coordinate * step(d).stride;
  };
  return rank_of(part(Dimension::tensor, c.tensor) + part(Dimension::context, c.context) +
                 part(Dimension::data, c.data) + part(Dimension::pipeline, c.pipeline));
}

void Placement::append_along(const Step& along, std::size_t rank, std::vector<Rank>& ranks) const {
  const std::size_t first = rank - along.of(rank) * along.stride;
  for (std::size_t i = 0; i < along.size; ++i) ranks.push_back(rank_of(first + i * along.stride));
}

void Placement::append_replicas(const Step& cut, std::size_t rank, std::vector<Rank>& ranks) const {
  const Step &inner = step(inner_), &outer = step(outer_);
  const std::size_t place = replica(rank);
  const std::size_t base = rank - inner.of(rank) * inner.stride - outer.of(rank) * outer.stride;
  const std::size_t first = place - cut.of(place) * cut.stride;
  for (std::size_t i = 0; i < cut.size; ++i) {
    const std::size_t member = first + i * cut.stride;
    ranks.push_back(
        rank_of(base + member % inner.size * inner.stride + member / inner.size * outer.stride));
  }
}

RankGroups Placement::groups(Dimension dimension) const {
  const Step& along = step(dimension);
  RankGroups groups{along.size, {}};
  groups.ranks.reserve(world_);
  const bool is_expert = dimension == Dimension::expert;
  for (std::size_t rank = 0; rank < world_; ++rank) {
    if (along.of(is_expert ? replica(rank) : rank) != 0) continue;
    if (is_expert)
      append_replicas(along, rank, groups.ranks);
    else
      append_along(along, rank, groups.ranks);
  }
  ASSERT(groups.ranks.size() == world_);
  return groups;
}

RankGroups Placement::groups(Replicas replicas) const {
  const Step& cut = cuts_[at(replicas)];
  RankGroups groups{cut.size, {}};
  groups.ranks.reserve(world_);
  for (std::size_t rank = 0; rank < world_; ++rank)
    if (cut.of(replica(rank)) == 0) append_replicas(cut, rank, groups.ranks);
  ASSERT(groups.ranks.size() == world_);
  return groups;
}

RankGroups Placement::ends(std::size_t first, std::size_t last) const {
  ASSERT(first != last);
  const Step& along = step(Dimension::pipeline);
  const auto [least, most] = std::minmax(first, last);
  RankGroups groups{2, {}};
  for (std::size_t rank = 0; rank < world_; ++rank)
    if (along.of(rank) == least) {
      groups.ranks.push_back(rank_of(rank));
      groups.ranks.push_back(rank_of(rank + (most - least) * along.stride));
    }
  return groups;
}

std::vector<Rank> Placement::group(Dimension dimension, Rank member) const {
  ASSERT(index(member) < world_);
  std::vector<Rank> ranks;
  ranks.reserve(size(dimension));
  if (dimension == Dimension::expert)
    append_replicas(step(dimension), index(member), ranks);
  else
    append_along(step(dimension), index(member), ranks);
  return ranks;
}

std::vector<Rank> Placement::group(Replicas replicas, Rank member) const {
  ASSERT(index(member) < world_);
  std::vector<Rank> ranks;
  ranks.reserve(size(replicas));
  append_replicas(cuts_[at(replicas)], index(member), ranks);
  return ranks;
}

Placement place_ranks(const Parallelism& parallelism, std::size_t world) {
  std::vector<Problem> problems;
  for (KeyProblem& problem : placement_problems(parallelism, world))
    problems.push_back({{}, std::move(problem.message)});
  if (!problems.empty()) throw InputError(std::move(problems));
  return {parallelism, world};
}

Batch batch_of(const Training& t, std::size_t data_parallel) {
  const std::size_t per_step = t.micro_batch_size * data_parallel;
  const std::size_t global = t.global_batch_size == 0     ? per_step
                             : t.scaling == Scaling::weak ? t.global_batch_size * data_parallel
                                                          : t.global_batch_size;
  ASSERT(per_step > 0 && global % per_step == 0);
  return {global, global / per_step};
}

}  // namespace rehearse
