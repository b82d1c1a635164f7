// Rows of equal height: label, bar, value.
#include "tools/lab/bars.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/report/palette.hpp"
#include "tools/report/svg.hpp"

namespace rehearse {

Figure bars_figure(std::string_view title, const std::vector<LabBar>& bars,
                   const FigureSize& size) {
  constexpr double row = 26, label_width = 130, value_width = 150, gap = 8;
  Figure figure{.name = "curve", .title = std::string{title}};
  figure.description = fmt::format("{}: a bar for each value", title);
  if (std::any_of(bars.begin(), bars.end(), [](const LabBar& bar) { return bar.is_now; }))
    figure.description += ", marked where the scenario stands";
  figure.table.head = {"value", "result"};
  Svg svg(size.width, row * static_cast<double>(bars.size()) + 2 * gap);
  const double room = std::max(size.width - label_width - value_width - 2 * gap, 40.0);
  double y = gap;
  for (const LabBar& bar : bars) {
    svg.text(label_width, y + 17, bar.is_now ? "tx e b" : "tx e", fitted(bar.label, label_width));
    const double width = std::clamp(bar.part, 0.0, 1.0) * room;
    svg.rect(label_width + gap, y + 4, width, row - 8,
             class_of(bar.is_now ? Paint::series_2 : Paint::series_1), bar.words);
    svg.text(label_width + 2 * gap + width, y + 17, "tx", bar.words);
    figure.table.rows.push_back({bar.label, bar.words});
    y += row;
  }
  figure.svg = svg.document(title, figure.description);
  return figure;
}

}  // namespace rehearse
