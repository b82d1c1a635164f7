// The colours of all figures, in light and in dark. Forward is blue, backward orange, its two
// halves teal (inputs) and green (weights), communication yellow: as in the figures that everybody
// has seen.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "strategies/lowering/step_program.hpp"

namespace rehearse {

enum class Paint : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  forward_odd,  // of a rank's second, fourth … stage: as the one above, told apart
  backward_odd,
  backward_input_odd,
  backward_weight_odd,
  recompute,
  communication,
  optimizer,
  bubble,
  series_1,  // for curves, points and kinds of memory, which have no colour of their own
  series_2,
  series_3,
  series_4,
  series_5,
  series_6,
  series_7,
  series_8,
  load_none,  // of links: unused, then by how busy
  load_low,
  load_middle,
  load_high,
};
inline constexpr std::size_t paint_count = 24;

struct PaintColours {
  std::string_view name;  // the CSS class of what is filled with it
  std::string_view words;
  std::string_view light, light_text;  // "#rrggbb"; the text is what stands on it
  std::string_view dark, dark_text;
};

/// By Paint.
std::span<const PaintColours> paints();
inline const PaintColours& colours(Paint paint) {
  return paints()[static_cast<std::size_t>(paint)];
}
inline std::string_view class_of(Paint paint) { return colours(paint).name; }

struct GroundColours {
  std::string_view ground, text, muted, line;  // line: axes and frames
};
GroundColours light_ground();
GroundColours dark_ground();

/// The style sheet of every figure: plain rules first, so that programs without media queries show
/// the light ones.
std::string figure_css();

Paint paint_of(Phase phase, bool communicates);
Paint paint_of(ActionKind kind, bool odd_chunk);
/// The n-th of a series; they repeat after the eighth.
Paint series(std::size_t n);
/// Of a link that is busy for this share of the time.
Paint load_paint(double share);

/// WCAG 2's ratio of two "#rrggbb", from 1 to 21.
double contrast(std::string_view a, std::string_view b);

}  // namespace rehearse
