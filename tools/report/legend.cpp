// Entries flow as words do; a character is taken for 6.6 pixels wide, which is more than it is.
#include "tools/report/legend.hpp"

#include <algorithm>

namespace rehearse {

namespace {

constexpr double line = 18, swatch = 11;

}  // namespace

Legend::Legend(std::vector<LegendEntry> entries, double left, double right) {
  double x = left, y = 6;
  for (LegendEntry& entry : entries) {
    entry.words = fitted(entry.words, right - left - 30);
    const double space = 30 + 6.6 * static_cast<double>(entry.words.size());
    if (x > left && x + space > right) x = left, y += line;
    placed_.push_back({std::move(entry), x, y});
    x += space;
  }
  height_ = placed_.empty() ? 0 : y + line + 4;
}

void Legend::draw(Svg& svg) const {
  for (const Placed& one : placed_) {
    svg.rect(one.x, one.y, swatch, swatch, class_of(one.entry.paint));
    svg.text(one.x + swatch + 5, one.y + swatch - 1, "tx", one.entry.words);
  }
}

}  // namespace rehearse
