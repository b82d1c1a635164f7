// A table in CSV as RFC 4180 has it: a header line, commas, quotes around cells that need them,
// doubled quotes inside. Knows the line of every row, so that mistakes can be shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace rehearse {

struct CsvTable {
  struct Row {
    struct Start {
      std::uint32_t line = 0, column = 0;
    };
    std::vector<std::string> cells;  // as many as there are columns
    std::vector<Start> starts;       // of the cells; a quoted one may go on for several lines
    std::uint32_t line = 0;          // where the row begins
  };
  std::vector<std::string> columns;
  std::vector<Row> rows;
};

/// Blank lines are skipped. Throws InputError with every row that has too few or too many cells, a
/// column that is there twice, a quote that is never closed or stands inside a cell.
CsvTable parse_csv(std::string_view text, const std::string& file);

}  // namespace rehearse
