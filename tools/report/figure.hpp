// What every figure is: a picture, words about it, and the same in a table for those who do not see
// it. Figures are functions from values to this value; pages, lessons and the lab show it.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct FigureTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

struct Figure {
  std::string name;         // "pipeline": small letters and dashes, for ids and file names
  std::string title;        // plain text, not escaped
  std::string description;  // what to see in it, plain text
  std::string svg;          // a whole document; empty: there is nothing to draw
  FigureTable table;
  std::string data;  // JSON with more detail than the picture, for zooming; may be empty
};

struct FigureSize {
  double width = 1120;
  // The table and what is read by whoever zooms in: most of a large picture's work, and not asked
  // for where the picture alone is shown, anew with every move of a slider.
  bool has_data = true;
};

}  // namespace rehearse
