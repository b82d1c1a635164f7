// Merging keeps every box and every moment of work; boxes of one lane never overlap.
#include "tools/report/lanes.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace rehearse::lanes_test {
namespace {

Time ns(std::int64_t count) { return count * 1_ns; }

LaneBox box(std::int64_t begin, std::int64_t end, Paint paint = Paint::forward) {
  return {ns(begin), ns(end), paint};
}

std::vector<LaneBox> random_boxes(std::mt19937_64& random, std::size_t count) {
  std::vector<LaneBox> boxes;
  std::int64_t now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now += static_cast<std::int64_t>(random() % 40) * (random() % 3 == 0);
    const auto length = static_cast<std::int64_t>(1 + random() % (random() % 8 == 0 ? 200 : 9));
    boxes.push_back(box(now, now + length, static_cast<Paint>(random() % paint_count)));
    now += length;
  }
  return boxes;
}

TEST(Lanes, MergingKeepsEveryBoxOnce) {
  std::mt19937_64 random(9);
  for (const std::int64_t grain : {0, 1, 7, 30, 1000}) {
    const std::vector<LaneBox> boxes = random_boxes(random, 500);
    const std::vector<LaneBox> result = merged(boxes, ns(grain));
    std::size_t next = 0;
    for (const LaneBox& one : result) {
      ASSERT_EQ(one.begin, boxes[next].begin);
      ASSERT_EQ(one.end, boxes[next + one.count - 1].end);
      // What was wide enough to see stays by itself.
      if (one.count > 1)
        for (std::size_t i = next; i < next + one.count; ++i)
          ASSERT_LT((boxes[i].end - boxes[i].begin).ps(), ns(grain).ps());
      else
        ASSERT_EQ(one, boxes[next]);
      next += one.count;
    }
    EXPECT_EQ(next, boxes.size());
    if (grain == 0) {
      EXPECT_EQ(result, boxes);
      continue;
    }
    // At most two for every grain of time: one narrow, and a wide one or a gap behind it.
    EXPECT_LE(static_cast<std::int64_t>(result.size()),
              2 * (boxes.back().end.ps() / ns(grain).ps() + 2));
  }
}

TEST(Lanes, MergedBoxesHaveTheColourOfWhichTheyHaveMost) {
  const std::vector<LaneBox> boxes{box(0, 2), box(2, 5, Paint::backward), box(5, 7)};
  const std::vector<LaneBox> result = merged(boxes, ns(100));
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(result[0].paint, Paint::forward);
  EXPECT_EQ(words_of({}, result[0]).words, "3 at this size, mostly forward");
}

TEST(Lanes, WhatOverlapsGoesBeside) {
  const FigureLane lane{"a", "b", 10, {box(0, 10), box(5, 8), box(8, 20), box(10, 11), box(9, 10)}};
  std::size_t boxes = 0;
  for (const FigureLane& one : unlapped(lane)) {
    Time end;
    for (const LaneBox& b : one.boxes) {
      EXPECT_GE(b.begin, end);
      end = b.end;
      ++boxes;
    }
  }
  EXPECT_EQ(boxes, 5u);
  EXPECT_EQ(unlapped(lane).size(), 3u);
}

TEST(Lanes, DataIsBoundedAndAddsUp) {
  std::mt19937_64 random(3);
  Lanes lanes;
  lanes.tell = [](std::uint32_t) { return BoxWords{"<", "<b>", "</script>"}; };
  lanes.lanes.push_back({"</script>", "one", 20, random_boxes(random, 3000)});
  lanes.lanes.push_back({"b", "two", 20, random_boxes(random, 3000)});
  lanes.whole = std::max(lanes.lanes[0].boxes.back().end, lanes.lanes[1].boxes.back().end);
  for (const std::size_t most : {10'000u, 2'000u}) {
    const std::string text = lanes_data(lanes, most);
    EXPECT_EQ(text.find('<'), std::string::npos);
    const nlohmann::json data = nlohmann::json::parse(text);
    std::size_t count = 0;
    for (std::size_t l = 0; l < 2; ++l) {
      const nlohmann::json& boxes = data["lanes"][l]["boxes"];
      ASSERT_EQ(boxes.size() % 6, 0u);
      count += boxes.size() / 6;
      double end = 0;
      for (std::size_t i = 0; i < boxes.size(); i += 6) {
        end += boxes[i].get<double>() + boxes[i + 1].get<double>();
        ASSERT_LT(boxes[i + 4].get<std::size_t>(), data["texts"].size());
      }
      // Gaps and lengths add up to where the last box ends.
      EXPECT_NEAR(end * data["tick"].get<double>(),
                  static_cast<double>(lanes.lanes[l].boxes.back().end.ps()),
                  data["tick"].get<double>());
    }
    EXPECT_LE(count, most);
    EXPECT_TRUE(count == 6000u || most < 6000u) << count;
  }
}

TEST(Lanes, AMillionBoxesMakeASmallPicture) {
  Lanes lanes;
  lanes.tell = [](std::uint32_t) { return BoxWords{}; };
  lanes.lanes.push_back({"a", "", 20, {}});
  for (std::int64_t i = 0; i < 1'000'000; ++i)
    lanes.lanes[0].boxes.push_back(box(10 * i, 10 * i + 7, static_cast<Paint>(i / 1000 % 4)));
  lanes.whole = ns(10'000'000);
  EXPECT_LT(draw_lanes(lanes, {}, "t", "d").size(), 400'000u);
}

}  // namespace
}  // namespace rehearse::lanes_test
