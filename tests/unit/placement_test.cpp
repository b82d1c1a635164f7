// Coordinates and groups against plain loops over the grid, and against Megatron's own generator.
#include "strategies/placement/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "sim/base/error.hpp"

namespace rehearse::placement_test {
namespace {

using Group = std::vector<std::size_t>;
using Groups = std::vector<Group>;

Groups plain(const RankGroups& groups) {
  Groups all;
  for (std::size_t g = 0; g < groups.count(); ++g) {
    all.emplace_back();
    for (const Rank rank : groups[g]) all.back().push_back(index(rank));
  }
  return all;
}

std::vector<std::string> words(const std::string& order) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < order.size(); at += 3) all.push_back(order.substr(at, 2));
  return all;
}

// The grid walked by hand: the first word of the order turns fastest, as an odometer does.
using Grid = std::vector<std::map<std::string, std::size_t>>;
Grid walked(const std::string& order, std::map<std::string, std::size_t> sizes) {
  Grid ranks{{}};
  for (const std::string& word : words(order)) {
    Grid longer;
    for (std::size_t i = 0; i < sizes[word]; ++i)
      for (auto rank : ranks) {
        rank[word] = i;
        longer.push_back(rank);
      }
    ranks = longer;
  }
  return ranks;
}

// Ranks that agree in everything but `free`, groups by their first rank.
Groups grouped(const Grid& grid, const std::vector<std::string>& free) {
  std::map<std::map<std::string, std::size_t>, Group> by_rest;
  for (std::size_t rank = 0; rank < grid.size(); ++rank) {
    auto rest = grid[rank];
    for (const std::string& word : free) rest.erase(word);
    by_rest[rest].push_back(rank);
  }
  Groups all;
  for (const auto& entry : by_rest) all.push_back(entry.second);
  std::sort(all.begin(), all.end());
  return all;
}

struct Sample {
  Parallelism parallelism;
  std::size_t world = 1, data = 1;
};

Sample random_sample(std::mt19937_64& generator) {
  const auto pick = [&](std::vector<std::size_t> from) { return from[generator() % from.size()]; };
  Sample sample;
  Parallelism& p = sample.parallelism;
  p.tensor = pick({1, 2, 3, 4, 8});
  p.pipeline = pick({1, 2, 3, 5});
  p.context = pick({1, 1, 2, 3, 4});
  sample.data = pick({1, 2, 4, 6});
  sample.world = p.tensor * p.pipeline * p.context * sample.data;
  const std::size_t replicas = sample.data * p.context;
  do p.expert = pick({1, 2, 3, 4, 6, 8});
  while (replicas % p.expert != 0);
  do p.zero_shard_ranks = pick({0, 1, 2, 3, 4, 6});
  while (p.zero_shard_ranks > 0 && replicas % p.zero_shard_ranks != 0);
  p.zero_stage = 1;
  std::vector<std::string> order = words(p.order);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  p.order.clear();
  for (const std::string& word : order) p.order += (p.order.empty() ? "" : "-") + word;
  return sample;
}

std::string without(std::string order, const std::string& word) {
  const std::size_t at = order.find(word);
  order.erase(at == 0 ? 0 : at - 1, 3);
  return order;
}

TEST(Placement, IsTheOdometerOfTheOrder) {
  std::mt19937_64 generator{7};
  for (int i = 0; i < 300; ++i) {
    const auto [p, world, data] = random_sample(generator);
    SCOPED_TRACE(p.order + " sample " + std::to_string(i));
    const Placement placement = place_ranks(p, world);
    const Grid grid =
        walked(without(p.order, "ep"),
               {{"tp", p.tensor}, {"cp", p.context}, {"dp", data}, {"pp", p.pipeline}});
    ASSERT_EQ(grid.size(), world);
    for (std::size_t r = 0; r < world; ++r) {
      const Coordinates at = placement.coordinates(static_cast<Rank>(r));
      const auto& expected = grid[r];
      EXPECT_EQ(at.tensor, expected.at("tp"));
      EXPECT_EQ(at.context, expected.at("cp"));
      EXPECT_EQ(at.data, expected.at("dp"));
      EXPECT_EQ(at.pipeline, expected.at("pp"));
      EXPECT_EQ(index(placement.rank(at)), r);
    }
    EXPECT_EQ(plain(placement.groups(Dimension::tensor)), grouped(grid, {"tp"}));
    EXPECT_EQ(plain(placement.groups(Dimension::context)), grouped(grid, {"cp"}));
    EXPECT_EQ(plain(placement.groups(Dimension::data)), grouped(grid, {"dp"}));
    EXPECT_EQ(plain(placement.groups(Dimension::pipeline)), grouped(grid, {"pp"}));
    EXPECT_EQ(plain(placement.groups(Replicas::all)), grouped(grid, {"dp", "cp"}));
  }
}

// Megatron makes a second grid for experts, without cp and with dp × cp / ep for dp, and refuses an
// order in which its pipelines are not those of the first. Where both exist they must agree.
TEST(Placement, PutsExpertsWhereMegatronDoes) {
  std::mt19937_64 generator{11};
  int compared = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto [p, world, data] = random_sample(generator);
    const std::size_t alike = data * p.context / p.expert;
    const Grid dense =
        walked(without(p.order, "ep"),
               {{"tp", p.tensor}, {"cp", p.context}, {"dp", data}, {"pp", p.pipeline}});
    const Grid experts =
        walked(without(p.order, "cp"),
               {{"tp", p.tensor}, {"ep", p.expert}, {"dp", alike}, {"pp", p.pipeline}});
    if (grouped(dense, {"pp"}) != grouped(experts, {"pp"})) continue;
    if (grouped(dense, {"tp"}) != grouped(experts, {"tp"})) continue;
    ++compared;
    SCOPED_TRACE(p.order + " sample " + std::to_string(i));
    const Placement placement = place_ranks(p, world);
    EXPECT_EQ(plain(placement.groups(Dimension::expert)), grouped(experts, {"ep"}));
    EXPECT_EQ(plain(placement.groups(Replicas::experts)), grouped(experts, {"dp"}));
    for (std::size_t r = 0; r < world; ++r)
      EXPECT_EQ(placement.coordinates(static_cast<Rank>(r)).expert, experts[r].at("ep"));
  }
  EXPECT_GT(compared, 400);
}

TEST(Placement, CutsReplicasIntoShardsAndCopies) {
  std::mt19937_64 generator{13};
  for (int i = 0; i < 300; ++i) {
    const auto [p, world, data] = random_sample(generator);
    SCOPED_TRACE(p.order + " sample " + std::to_string(i));
    const Placement placement = place_ranks(p, world);
    const Groups replicas = plain(placement.groups(Replicas::all));
    const std::size_t shard = p.zero_shard_ranks ? p.zero_shard_ranks : replicas[0].size();
    Groups shards, copies;
    for (const Group& ranks : replicas) {
      for (std::size_t begin = 0; begin < ranks.size(); begin += shard)
        shards.emplace_back(ranks.begin() + static_cast<std::ptrdiff_t>(begin),
                            ranks.begin() + static_cast<std::ptrdiff_t>(begin + shard));
      for (std::size_t part = 0; part < shard; ++part) {
        copies.emplace_back();
        for (std::size_t at = part; at < ranks.size(); at += shard)
          copies.back().push_back(ranks[at]);
      }
    }
    std::sort(shards.begin(), shards.end());
    std::sort(copies.begin(), copies.end());
    EXPECT_EQ(plain(placement.groups(Replicas::shards)), shards);
    EXPECT_EQ(plain(placement.groups(Replicas::copies)), copies);
  }
}

TEST(Placement, FindsTheGroupOfAnyMember) {
  std::mt19937_64 generator{17};
  for (int i = 0; i < 100; ++i) {
    const auto [p, world, data] = random_sample(generator);
    const Placement placement = place_ranks(p, world);
    const auto check = [&](auto kind) {
      const RankGroups groups = placement.groups(kind);
      EXPECT_EQ(groups.size, placement.size(kind));
      for (std::size_t g = 0; g < groups.count(); ++g)
        for (const Rank member : groups[g]) {
          const std::vector<Rank> group = placement.group(kind, member);
          EXPECT_TRUE(std::equal(group.begin(), group.end(), groups[g].begin(), groups[g].end()));
        }
    };
    for (std::size_t d = 0; d < dimension_count; ++d) check(static_cast<Dimension>(d));
    for (const Replicas kind :
         {Replicas::all, Replicas::experts, Replicas::shards, Replicas::copies})
      check(kind);
  }
}

TEST(Placement, KnowsThePictureInItsHeader) {
  const Parallelism p{.tensor = 2, .pipeline = 2, .expert = 2};
  const Placement placement = place_ranks(p, 16);
  EXPECT_EQ(placement.size(Dimension::data), 4u);
  EXPECT_EQ(placement.coordinates(Rank{7}),
            (Coordinates{.tensor = 1, .context = 0, .expert = 1, .data = 3, .pipeline = 0}));
  EXPECT_EQ(plain(placement.groups(Dimension::pipeline))[3], (Group{3, 11}));
  EXPECT_EQ(plain(placement.groups(Dimension::expert))[0], (Group{0, 2}));
  EXPECT_EQ(plain(placement.groups(Replicas::experts))[0], (Group{0, 4}));
}

// What Megatron's docstring of initialize_model_parallel shows for 16 GPUs, tp 2 and pp 4.
TEST(Placement, KnowsMegatronsExample) {
  const Placement placement = place_ranks({.tensor = 2, .pipeline = 4}, 16);
  EXPECT_EQ(plain(placement.groups(Dimension::data)),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(plain(placement.groups(Dimension::pipeline)),
            (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

TEST(Placement, LeavesOutOfTheOrderWhatIsOne) {
  Parallelism p{.tensor = 4, .pipeline = 2, .order = "tp-dp-pp"};
  EXPECT_EQ(place_ranks(p, 32).coordinates(Rank{31}),
            (Coordinates{.tensor = 3, .data = 3, .pipeline = 1}));
  p.order = "pp-tp";
  EXPECT_EQ(place_ranks(p, 8).coordinates(Rank{3}), (Coordinates{.tensor = 1, .pipeline = 1}));
}

// Whatever the order, the ends of a pipeline differ in their place in it and in nothing else.
TEST(Placement, EndsOfThePipeline) {
  for (const char* order : {"tp-cp-ep-dp-pp", "pp-tp-dp", "tp-pp-dp"}) {
    const Placement placement{{.tensor = 2, .pipeline = 3, .order = order}, 12};
    for (const auto& [first, last] : {std::pair{0u, 2u}, {2u, 0u}, {1u, 2u}}) {
      const RankGroups pairs = placement.ends(first, last);
      ASSERT_EQ(pairs.count(), 4u);
      for (std::size_t g = 0; g < pairs.count(); ++g) {
        Coordinates here = placement.coordinates(pairs[g][0]);
        EXPECT_EQ(here.pipeline, std::min(first, last));
        here.pipeline = std::max(first, last);
        EXPECT_EQ(placement.rank(here), pairs[g][1]) << order;
      }
    }
  }
}

}  // namespace
}  // namespace rehearse::placement_test
