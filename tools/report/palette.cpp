// Chosen so that every fill stands out from its ground (3 to 1) and text on it can be read
// (4.5 to 1), in both schemes; tests/unit/palette_test.cpp holds that.
#include "tools/report/palette.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace rehearse {

namespace {

constexpr std::string_view white = "#ffffff", ink = "#101418";

constexpr std::array<PaintColours, paint_count> table{{
    {"pF", "forward", "#2f6fb7", white, "#6fa8ea", ink},
    {"pB", "backward", "#c96a12", ink, "#f0a050", ink},
    {"pI", "backward of inputs", "#0f7f80", white, "#4cc4c2", ink},
    {"pW", "backward of weights", "#2f7d32", white, "#74c274", ink},
    {"pFo", "forward, second chunk", "#1c4a80", white, "#a9cdf5", ink},
    {"pBo", "backward, second chunk", "#8f4a0a", white, "#f8cb98", ink},
    {"pIo", "backward of inputs, second chunk", "#0a5657", white, "#9fe3e1", ink},
    {"pWo", "backward of weights, second chunk", "#1c5420", white, "#b2e0b0", ink},
    {"pR", "recomputation", "#6f7fb0", ink, "#98a6d8", ink},
    {"pC", "communication", "#b08a00", ink, "#ecd24a", ink},
    {"pO", "optimizer", "#7b4fa3", white, "#bd97de", ink},
    {"pU", "idle", "#8a9099", ink, "#7f8791", ink},
    {"s1", "", "#2f6fb7", white, "#6fa8ea", ink},
    {"s2", "", "#c96a12", ink, "#f0a050", ink},
    {"s3", "", "#2f7d32", white, "#74c274", ink},
    {"s4", "", "#7b4fa3", white, "#bd97de", ink},
    {"s5", "", "#b08a00", ink, "#ecd24a", ink},
    {"s6", "", "#0f7f80", white, "#4cc4c2", ink},
    {"s7", "", "#b3405f", white, "#ee8fa8", ink},
    {"s8", "", "#6b7480", white, "#a5aeb8", ink},
    {"l0", "unused", "#8a9099", ink, "#7f8791", ink},
    {"l1", "below 25 % busy", "#2f7d32", white, "#74c274", ink},
    {"l2", "25 to 75 % busy", "#b08a00", ink, "#ecd24a", ink},
    {"l3", "above 75 % busy", "#b8281f", white, "#ff8a7a", ink},
}};

std::string ground_rules(const GroundColours& ground) {
  return fmt::format(
      ".bg{{fill:{0}}}.tx{{fill:{1}}}.mu{{fill:{2}}}.ax{{stroke:{3};fill:none}}"
      ".gr{{stroke:{3};stroke-opacity:.35;fill:none}}.hl{{stroke:{1};fill:none}}",
      ground.ground, ground.text, ground.muted, ground.line);
}

// A fill, the text on it, and the same colour as a line.
std::string paint_rule(std::string_view name, std::string_view fill, std::string_view text) {
  return fmt::format(".{0}{{fill:{1}}}.t{0}{{fill:{2}}}.k{0}{{stroke:{1};fill:none}}", name, fill,
                     text);
}

double channel(std::string_view colour, std::size_t at) {
  const auto digit = [&](std::size_t i) {
    const char c = colour[i];
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
  };
  const double value = (digit(at) * 16 + digit(at + 1)) / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance(std::string_view colour) {
  return 0.2126 * channel(colour, 1) + 0.7152 * channel(colour, 3) + 0.0722 * channel(colour, 5);
}

}  // namespace

std::span<const PaintColours> paints() { return table; }

GroundColours light_ground() { return {"#ffffff", "#1b1f24", "#57606a", "#8a9099"}; }
GroundColours dark_ground() { return {"#15181c", "#e8ebef", "#a2abb5", "#727a84"}; }

std::string figure_css() {
  std::string css =
      "text{font-family:system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:12px}"
      ".sm{font-size:10px}.b{font-weight:600}.m{text-anchor:middle}.e{text-anchor:end}"
      ".box{stroke-width:.5}.th{stroke-width:2}";
  css += ground_rules(light_ground());
  for (const PaintColours& paint : table)
    css += paint_rule(paint.name, paint.light, paint.light_text);
  css += "@media screen and (prefers-color-scheme:dark){" + ground_rules(dark_ground());
  for (const PaintColours& paint : table)
    css += paint_rule(paint.name, paint.dark, paint.dark_text);
  return css + "}";
}

Paint paint_of(Phase phase, bool communicates) {
  if (communicates) return Paint::communication;
  switch (phase) {
    case Phase::forward:
      return Paint::forward;
    case Phase::recompute:
      return Paint::recompute;
    case Phase::backward:
      return Paint::backward;
    case Phase::backward_input:
      return Paint::backward_input;
    case Phase::backward_weight:
      return Paint::backward_weight;
    case Phase::gradients:
    case Phase::parameters:
    case Phase::optimizer:
      return Paint::optimizer;
    case Phase::hand_over:
      return Paint::communication;
  }
  return Paint::bubble;
}

Paint paint_of(ActionKind kind, bool odd_chunk) {
  return static_cast<Paint>(static_cast<std::size_t>(kind) + (odd_chunk ? 4 : 0));
}

Paint series(std::size_t n) {
  return static_cast<Paint>(static_cast<std::size_t>(Paint::series_1) + n % 8);
}

Paint load_paint(double share) {
  if (share <= 0) return Paint::load_none;
  if (share < 0.25) return Paint::load_low;
  return share <= 0.75 ? Paint::load_middle : Paint::load_high;
}

double contrast(std::string_view a, std::string_view b) {
  const double first = luminance(a), second = luminance(b);
  return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

}  // namespace rehearse
