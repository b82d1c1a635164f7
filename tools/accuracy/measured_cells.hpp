// The cells of one row by the names of their columns, read strictly: what is wrong is noted with
// its line, and a harmless value goes on.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/accuracy/measured_csv.hpp"

namespace rehearse {

class MeasuredCells {
 public:
  MeasuredCells(const CsvTable& table, const std::string& file) : table_{table}, file_{file} {}
  void go_to(const CsvTable::Row& row) { row_ = &row; }

  bool has_column(std::string_view column) const;
  /// Must not be empty.
  std::string text(std::string_view column);
  /// May be empty, and so may the column.
  std::string note(std::string_view column) const;
  /// One of these words.
  std::string word(std::string_view column, std::initializer_list<std::string_view> words);

  std::size_t count(std::string_view column, std::size_t least, std::size_t most);
  std::int64_t size(std::string_view column, std::int64_t least, std::int64_t most);
  std::optional<std::int64_t> maybe_size(std::string_view column, std::int64_t most);
  /// Finite and above zero.
  double positive(std::string_view column);
  std::optional<double> maybe_positive(std::string_view column);
  /// Finite and not below zero.
  double amount(std::string_view column);
  bool flag(std::string_view column);
  /// 0, 1, or nothing for `unknown` and for an empty cell.
  std::optional<bool> maybe_flag(std::string_view column);

  void complain(std::string_view column, std::string message);
  std::vector<Problem>& problems() { return problems_; }

 private:
  const std::string* find(std::string_view column) const;
  std::optional<double> number(std::string_view column, std::string_view what, bool zero);

  const CsvTable& table_;
  const std::string& file_;
  const CsvTable::Row* row_ = nullptr;
  std::vector<Problem> problems_;
};

}  // namespace rehearse
