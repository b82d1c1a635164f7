// One self-contained HTML page: figures with what they say as tables, facts, a verdict. It needs no
// network and asks for none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/report/figure.hpp"

namespace rehearse {

/// A figure of the headline: "step time", "964 ms", "4 ranks".
struct PageCard {
  std::string what, value, more;
};

struct PageTable {
  std::string title;
  FigureTable table;
};

/// All texts are plain; the page escapes them.
struct Page {
  std::string title, kicker;  // what it is about; what kind of report it is
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<PageCard> cards;
  std::vector<std::string> verdict;  // paragraphs
  std::vector<Figure> figures;       // those without a picture are left out
  std::vector<PageTable> tables;     // shown in full
  std::string transcript;            // what the terminal shows; kept as it is
  std::vector<std::string> notes;    // at the end: calibration, version, hash
};

std::string html_page(const Page& page);

}  // namespace rehearse
