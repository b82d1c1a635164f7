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
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/report/figure.hpp"
#include "tools/report/palette.hpp"

namespace rehearse {

struct LaneBox {
  Time begin, end;
  Paint paint{};
  std::uint32_t source = 0;  // what it shows, for Lanes::tell
  std::uint32_t count = 1;   // how many were merged into it
  bool is_mixed = false;     // not all of them have its colour
  friend bool operator==(const LaneBox&, const LaneBox&) = default;
};

struct FigureLane {
  std::string group, name;  // lanes of one group follow one another; a name may be empty
  double height = 20;
  std::vector<LaneBox> boxes;  // by begin, none over another
};

/// What a box says: in it where there is room, what it is, and what it waited for.
struct BoxWords {
  std::string label, words, waited;
};

struct Lanes {
  std::vector<FigureLane> lanes;
  Time whole;
  /// Of a source: asked only for what is shown, because a step has a million kernels.
  std::function<BoxWords(std::uint32_t source)> tell;
};

/// Neighbours that are both narrower than `grain` and no further apart become one, in the colour of
/// which it has most, until it is as wide as that. Every box is in exactly one of the result.
std::vector<LaneBox> merged(std::span<const LaneBox> boxes, Time grain);

/// Puts boxes that overlap onto lanes beside the first.
std::vector<FigureLane> unlapped(FigureLane lane);

std::string draw_lanes(const Lanes& lanes, const FigureSize& size, std::string_view title,
                       std::string_view description);

/// The lanes as JSON for the page's script, merged as far as it takes to have at most so many
/// boxes in all.
std::string lanes_data(const Lanes& lanes, std::size_t most_boxes);

/// Of a box, merged or not.
BoxWords words_of(const Lanes& lanes, const LaneBox& box);
/// "F3: 1.25 ms from 10 ms on; waited for …"
std::string tip_of(const BoxWords& words, const LaneBox& box);

}  // namespace rehearse
