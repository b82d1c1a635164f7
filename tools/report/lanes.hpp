// Boxes on lanes over time: what the timeline and the pipeline diagram have in common.
//
//   stage 0  compute        ▐0▐▐1▐▐2▐▐3▐        ▐ 0 ▐▐ 1 ▐      a group of lanes, each with boxes
//            sends forward     ▐ ▐  ▐ ▐                         that do not overlap
//   stage 1  compute           ▐0▐▐1▐ …
//
// What is narrower than a pixel is merged, so that a million kernels make a picture of some
// thousand boxes; the data beside it has as many as there is room for, for whoever zooms in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/units.hpp"
#include "tools/report/figure.hpp"
#include "tools/report/palette.hpp"

namespace rehearse {

/// Texts, each once, by number; 0 is the empty one.
class Texts {
 public:
  std::uint32_t add(std::string text);
  const std::string& operator[](std::uint32_t number) const { return all_[number]; }
  std::span<const std::string> all() const { return all_; }

 private:
  std::vector<std::string> all_{""};
  std::unordered_map<std::string, std::uint32_t> number_{{"", 0}};
};

struct LaneBox {
  Time begin, end;
  Paint paint{};
  std::uint32_t label = 0;   // what stands in it where there is room
  std::uint32_t words = 0;   // what it is
  std::uint32_t waited = 0;  // what it waited for
  std::uint32_t count = 1;   // how many were merged into it
  friend bool operator==(const LaneBox&, const LaneBox&) = default;
};

struct Lane {
  std::string group, name;  // lanes of one group follow one another; a name may be empty
  double height = 20;
  std::vector<LaneBox> boxes;  // by begin, none over another
};

struct Lanes {
  std::vector<Lane> lanes;
  Texts texts;
  Time whole;
};

/// Neighbours that are both narrower than `grain` and no further apart become one, in the colour of
/// which it has most, until it is as wide as that. Every box is in exactly one of the result.
std::vector<LaneBox> merged(std::span<const LaneBox> boxes, Time grain, Texts& texts);

/// Puts boxes that overlap onto lanes beside the first.
std::vector<Lane> unlapped(Lane lane);

/// The picture. `texts` of the lanes grow by what is merged.
std::string draw_lanes(Lanes& lanes, const FigureSize& size, std::string_view title,
                       std::string_view description);

/// The lanes as JSON for the page's script, merged as far as it takes to have at most so many
/// boxes in all.
std::string lanes_data(Lanes& lanes, std::size_t most_boxes);

/// "F3: 1.25 ms from 10 ms on; waited for …": what a box tells.
std::string tip_of(const Lanes& lanes, const LaneBox& box);

}  // namespace rehearse
