// Merging and telling of boxes; drawing is lanes_svg.cpp.
#include "tools/report/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <unordered_map>

#include "sim/engine/explain.hpp"
#include "tools/report/escape.hpp"

namespace rehearse {

namespace {

// Boxes that shall become one.
class Pile {
 public:
  Pile(const LaneBox& first) : box_{first} { note(first); }

  bool takes(const LaneBox& next, Time grain) const {
    return is_small_ && box_.end - box_.begin < grain && next.end - next.begin < grain &&
           next.begin - box_.end < grain;
  }
  void take(const LaneBox& next) {
    box_.end = std::max(box_.end, next.end);
    box_.count += next.count;
    box_.is_mixed |= next.is_mixed;
    note(next);
  }
  bool is_small(Time grain) { return is_small_ = box_.end - box_.begin < grain; }

  LaneBox done() const {
    LaneBox box = box_;
    if (pieces_ == 1) return box;
    const auto most = std::max_element(time_.begin(), time_.end());
    box.paint = static_cast<Paint>(most - time_.begin());
    box.is_mixed |= *most != total_;
    return box;
  }

 private:
  void note(const LaneBox& box) {
    const std::int64_t time = (box.end - box.begin).ps();
    time_[static_cast<std::size_t>(box.paint)] += time;
    total_ += time;
    ++pieces_;
  }

  LaneBox box_;
  std::array<std::int64_t, paint_count> time_{};
  std::int64_t total_ = 0;
  std::size_t pieces_ = 0;
  bool is_small_ = false;
};

// Texts, each once, by number.
class Texts {
 public:
  std::size_t add(const std::string& text) {
    const auto [at, is_new] = number_.try_emplace(text, number_.size());
    if (is_new) json_ += (json_.empty() ? "" : ",") + json_quoted(text);
    return at->second;
  }
  const std::string& json() const { return json_; }

 private:
  std::unordered_map<std::string, std::size_t> number_;
  std::string json_;
};

std::size_t count_merged(const Lanes& lanes, Time grain) {
  std::size_t count = 0;
  for (const FigureLane& lane : lanes.lanes) count += merged(lane.boxes, grain).size();
  return count;
}

}  // namespace

std::vector<LaneBox> merged(std::span<const LaneBox> boxes, Time grain) {
  std::vector<LaneBox> result;
  for (std::size_t i = 0; i < boxes.size();) {
    Pile pile{boxes[i++]};
    if (pile.is_small(grain))
      while (i < boxes.size() && pile.takes(boxes[i], grain)) pile.take(boxes[i++]);
    result.push_back(pile.done());
  }
  return result;
}

std::vector<FigureLane> unlapped(FigureLane lane) {
  std::stable_sort(lane.boxes.begin(), lane.boxes.end(),
                   [](const LaneBox& a, const LaneBox& b) { return a.begin < b.begin; });
  std::vector<FigureLane> lanes;
  std::vector<Time> free;  // by lane
  for (LaneBox& box : lane.boxes) {
    std::size_t l = 0;
    while (l < lanes.size() && free[l] > box.begin) ++l;
    if (l == lanes.size()) {
      lanes.push_back({lane.group, l == 0 ? lane.name : "", lane.height, {}});
      free.push_back(Time{});
    }
    free[l] = box.end;
    lanes[l].boxes.push_back(std::move(box));
  }
  return lanes;
}

BoxWords words_of(const Lanes& lanes, const LaneBox& box) {
  if (box.count == 1) return lanes.tell(box.source);
  return {"",
          fmt::format("{} at this size, {}{}", box.count, box.is_mixed ? "mostly " : "",
                      colours(box.paint).words),
          ""};
}

std::string tip_of(const BoxWords& words, const LaneBox& box) {
  std::string tip = fmt::format("{}: {} from {} on", words.words, readable(box.end - box.begin),
                                readable(box.begin));
  if (!words.waited.empty()) tip += "; " + words.waited;
  return tip;
}

// Times in ten-millionths of the whole: a third of the digits, and finer than any screen.
std::string lanes_data(const Lanes& lanes, std::size_t most_boxes) {
  Time grain;
  for (std::int64_t pixels = 1 << 20; count_merged(lanes, grain) > most_boxes && pixels > 256;
       pixels /= 2)
    grain = Time::picoseconds(lanes.whole.ps() / pixels);
  const double tick = std::max(1.0, static_cast<double>(lanes.whole.ps()) / 1e7);
  const auto ticks = [&](Time time) { return std::llround(static_cast<double>(time.ps()) / tick); };
  Texts texts;
  std::string rows;
  auto out = std::back_inserter(rows);
  for (const FigureLane& lane : lanes.lanes) {
    fmt::format_to(out, "{}{{\"group\":{},\"name\":{},\"boxes\":[", rows.empty() ? "" : ",\n",
                   json_quoted(lane.group), json_quoted(lane.name));
    long long now = 0;
    bool is_first = true;
    for (const LaneBox& box : merged(lane.boxes, grain)) {
      const long long begin = ticks(box.begin), end = ticks(box.end);
      const BoxWords words = words_of(lanes, box);
      fmt::format_to(out, "{}{},{},{},{},{},{}", is_first ? "" : ",", begin - now, end - begin,
                     static_cast<int>(box.paint), texts.add(words.label), texts.add(words.words),
                     texts.add(words.waited));
      now = end;
      is_first = false;
    }
    rows += "]}";
  }
  std::string classes;
  for (const PaintColours& paint : paints())
    classes += (classes.empty() ? "" : ",") + json_quoted(paint.name);
  return fmt::format(
      "{{\"kind\":\"lanes\",\"tick\":{},\"whole\":{},\"classes\":[{}],\n\"texts\":[{}],\n"
      "\"lanes\":[{}]}}",
      tick, ticks(lanes.whole), classes, texts.json(), rows);
}

}  // namespace rehearse
