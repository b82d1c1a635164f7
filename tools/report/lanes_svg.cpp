// The picture of lanes: names to the left, boxes, a time axis below, the colours' names above.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "tools/report/axes.hpp"
#include "tools/report/lanes.hpp"
#include "tools/report/legend.hpp"
#include "tools/report/svg.hpp"

namespace rehearse {

namespace {

constexpr double lane_gap = 2, group_gap = 8, axis_height = 24, right_margin = 12;
// More than these become a few paths without words of their own: the page's script has the words.
constexpr std::size_t most_told_boxes = 2500;
// What a browser scrolls smoothly, and a file can afford for a first look.
constexpr std::size_t most_boxes = 12'000;

class LanesPicture {
 public:
  LanesPicture(const Lanes& lanes, const FigureSize& size)
      : lanes_{lanes},
        left_{size.width < 700 ? 128.0 : 168.0},
        right_{size.width - right_margin},
        grain_{Time::picoseconds(static_cast<std::int64_t>(static_cast<double>(lanes.whole.ps()) /
                                                           (right_ - left_) / 2))},
        width_{size.width} {
    std::size_t boxes = merge(grain_);
    for (std::int64_t pixels = 1; boxes > most_boxes && pixels <= 8; pixels *= 2)
      boxes = merge(2 * pixels * grain_);
    tells_ = boxes <= most_told_boxes;
    legend_ = legend_of(shown_, left_, width_);
    top_ = std::max(legend_.height(), 8.0);
    place_lanes();
  }

  std::string draw(std::string_view title, std::string_view description) {
    Svg svg(width_, bottom_ + axis_height);
    legend_.draw(svg);
    draw_names(svg);
    draw_time_axis(svg, lanes_.whole, left_, right_, top_, bottom_);
    svg.open(fmt::format("class=\"lanes\" data-left=\"{}\" data-right=\"{}\"", svg_number(left_),
                         svg_number(right_)));
    for (std::size_t l = 0; l < shown_.size(); ++l) draw_lane(svg, l);
    svg.close();
    return svg.document(title, description);
  }

 private:
  std::size_t merge(Time grain) {
    shown_.clear();
    std::size_t boxes = 0;
    for (const FigureLane& lane : lanes_.lanes) {
      shown_.push_back(merged(lane.boxes, grain));
      boxes += shown_.back().size();
    }
    return boxes;
  }

  double x(Time time) const {
    return left_ + (right_ - left_) * static_cast<double>(time.ps()) /
                       static_cast<double>(std::max<std::int64_t>(lanes_.whole.ps(), 1));
  }

  static Legend legend_of(const std::vector<std::vector<LaneBox>>& rows, double left,
                          double right) {
    std::array<bool, paint_count> used{};
    for (const auto& row : rows)
      for (const LaneBox& box : row) used[static_cast<std::size_t>(box.paint)] = true;
    std::vector<LegendEntry> entries;
    for (std::size_t p = 0; p < paint_count; ++p)
      if (used[p]) entries.push_back({static_cast<Paint>(p), std::string{paints()[p].words}});
    return {std::move(entries), left, right};
  }

  void place_lanes() {
    double y = top_;
    for (std::size_t l = 0; l < lanes_.lanes.size(); ++l) {
      const bool begins = l == 0 || lanes_.lanes[l].group != lanes_.lanes[l - 1].group;
      if (l > 0) y += begins ? group_gap : lane_gap;
      y_.push_back(y);
      y += lanes_.lanes[l].height;
    }
    bottom_ = y + 4;
  }

  void draw_names(Svg& svg) const {
    for (std::size_t l = 0; l < lanes_.lanes.size(); ++l) {
      const FigureLane& lane = lanes_.lanes[l];
      const double middle = y_[l] + lane.height / 2 + 4;
      const bool begins = l == 0 || lane.group != lanes_.lanes[l - 1].group;
      const bool alone = lane.name.empty();
      const double room = left_ - 8;
      const std::string name = fitted(lane.name, room * 0.64);
      // Small letters are narrower than fitted() thinks: what they leave is the group's.
      const double left_over = alone ? room : room - 5.6 * static_cast<double>(name.size()) - 4;
      if (begins) svg.text(2, middle, "tx b", fitted(lane.group, std::max(left_over, room * 0.52)));
      if (!alone) svg.text(left_ - 6, middle, "mu e sm", name);
    }
  }

  void draw_lane(Svg& svg, std::size_t l) const {
    const FigureLane& lane = lanes_.lanes[l];
    svg.open(fmt::format("data-lane=\"{}\" data-y=\"{}\" data-height=\"{}\"", l, svg_number(y_[l]),
                         svg_number(lane.height)));
    if (tells_) {
      for (const LaneBox& box : shown_[l]) draw_box(svg, l, box);
    } else {
      std::map<Paint, std::string> paths;
      for (const LaneBox& box : shown_[l])
        add_box(paths[box.paint], x(box.begin), y_[l], wide(box), lane.height);
      for (const auto& [paint, path] : paths) svg.path(path, class_of(paint));
    }
    svg.close();
  }

  // Never too narrow to be seen.
  double wide(const LaneBox& box) const { return std::max(x(box.end) - x(box.begin), 0.25); }

  void draw_box(Svg& svg, std::size_t l, const LaneBox& box) const {
    const double begin = x(box.begin), width = wide(box), height = lanes_.lanes[l].height;
    // A hairline of ground between neighbours, where there is room for one.
    const double gap = width > 4 ? 0.6 : 0;
    const BoxWords words = words_of(lanes_, box);
    svg.rect(begin, y_[l], width - gap, height, class_of(box.paint), tip_of(words, box));
    const std::string& label = words.label;
    if (label.empty() || height < 12) return;
    if (6.2 * static_cast<double>(label.size()) + 2 > width) return;
    svg.text(begin + width / 2, y_[l] + height / 2 + 3.6,
             fmt::format("t{} m sm", class_of(box.paint)), label);
  }

  const Lanes& lanes_;
  double left_, right_;
  Time grain_;
  double width_, top_ = 0, bottom_ = 0;
  bool tells_ = true;
  std::vector<std::vector<LaneBox>> shown_;  // by lane, merged
  std::vector<double> y_;                    // of each lane's upper edge
  Legend legend_{{}, 0, 0};
};

}  // namespace

std::string draw_lanes(const Lanes& lanes, const FigureSize& size, std::string_view title,
                       std::string_view description) {
  return LanesPicture(lanes, size).draw(title, description);
}

}  // namespace rehearse
