// The names of colours above a figure.
#pragma once

#include <string>
#include <vector>

#include "tools/report/palette.hpp"
#include "tools/report/svg.hpp"

namespace rehearse {

struct LegendEntry {
  Paint paint{};
  std::string words;
};

/// Where the entries stand, line after line: how high that is must be known before the rest.
class Legend {
 public:
  Legend(std::vector<LegendEntry> entries, double left, double right);
  double height() const { return height_; }
  void draw(Svg& svg) const;

 private:
  struct Placed {
    LegendEntry entry;
    double x = 0, y = 0;
  };
  std::vector<Placed> placed_;
  double height_ = 0;
};

}  // namespace rehearse
