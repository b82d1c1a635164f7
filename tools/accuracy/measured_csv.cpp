// One pass over the text. A quote opens a cell only at its beginning; elsewhere it is a mistake.
#include "tools/accuracy/measured_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace rehearse {

namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_{text}, file_{file} {
    constexpr std::string_view mark = "\xEF\xBB\xBF";  // spreadsheets begin UTF-8 with it
    if (text_.starts_with(mark)) at_ = line_begin_ = mark.size();
  }

  std::optional<CsvTable::Row> next() {
    while (at_ < text_.size() && at_end_of_line()) end_line();
    if (at_ >= text_.size()) return {};
    CsvTable::Row row{{}, {}, line_};
    for (;;) {
      row.starts.push_back({line_, column()});
      row.cells.push_back(text_.substr(at_).starts_with('"') ? quoted() : plain());
      if (at_ >= text_.size() || text_[at_] != ',') break;
      ++at_;
    }
    end_line();
    return row;
  }

  std::vector<Problem>& problems() { return problems_; }

 private:
  bool at_end_of_line() const {
    return text_[at_] == '\n' || text_.substr(at_).starts_with("\r\n");
  }
  void end_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++line_, line_begin_ = ++at_;
  }
  std::uint32_t column() const { return static_cast<std::uint32_t>(at_ - line_begin_ + 1); }
  void complain(std::uint32_t line, std::uint32_t at, std::string message) {
    problems_.push_back({{file_, line, at}, std::move(message)});
  }

  std::string plain() {
    const std::size_t begin = at_;
    const std::uint32_t begin_column = column();
    bool has_quote = false;
    for (; at_ < text_.size() && text_[at_] != ',' && !at_end_of_line(); ++at_)
      has_quote = has_quote || text_[at_] == '"';
    if (has_quote)
      complain(line_, begin_column,
               "a quote inside a cell: put the whole cell in quotes and double it");
    return std::string{text_.substr(begin, at_ - begin)};
  }

  std::string quoted() {
    const std::uint32_t opened = line_, opened_column = column();
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (!text_.substr(at_).starts_with("\"\"")) break;
        ++at_;
      }
      if (text_[at_] == '\n') ++line_, line_begin_ = at_ + 1;
      cell += text_[at_];
    }
    if (at_ >= text_.size()) {
      complain(opened, opened_column, "a quote is opened here and never closed");
      return cell;
    }
    ++at_;
    if (at_ < text_.size() && text_[at_] != ',' && !at_end_of_line()) {
      complain(line_, column(),
               "text after a closing quote: double a quote that belongs to the cell");
      while (at_ < text_.size() && text_[at_] != ',' && !at_end_of_line()) ++at_;
    }
    return cell;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, line_begin_ = 0;
  std::uint32_t line_ = 1;
  std::vector<Problem> problems_;
};

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& file) {
  Reader reader{text, file};
  CsvTable table;
  const std::optional<CsvTable::Row> header = reader.next();
  if (!header) throw InputError(Place{file}, "is empty: it needs a header line and rows");
  table.columns = header->cells;
  // Else every line of a text would be a mistake of its own.
  if (table.columns.size() == 1 && reader.problems().empty())
    throw InputError({file, 1, 1},
                     "its first line names no columns; a table has several, with commas between");
  std::vector<Problem>& problems = reader.problems();
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (std::find(table.columns.begin(), table.columns.begin() + static_cast<std::ptrdiff_t>(c),
                  table.columns[c]) != table.columns.begin() + static_cast<std::ptrdiff_t>(c))
      problems.push_back({{file, header->starts[c].line, header->starts[c].column},
                          fmt::format("column '{}' is there twice", table.columns[c])});
  while (std::optional<CsvTable::Row> row = reader.next()) {
    if (row->cells.size() == table.columns.size())
      table.rows.push_back(std::move(*row));
    else
      problems.push_back({{file, row->line, 1},
                          fmt::format("{} cells, but the header has {} columns", row->cells.size(),
                                      table.columns.size())});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return table;
}

}  // namespace rehearse
