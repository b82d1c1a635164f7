// The reader tells all mistakes of a kind at once: first cells, then the schedule, then what its
// communication lacks.
#include "strategies/schedules/schedule_csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "strategies/schedules/check_schedule.hpp"
#include "strategies/schedules/csv_rows.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_{text}, file_{file} {}

  Schedule run() && {
    check_utf8(text_, file_);
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // as spreadsheets begin a file
    while (!text_.empty()) read_line();
    // Blank lines at the end are nobody's rank.
    while (!rows_.empty() && rows_.back().actions.empty()) rows_.pop_back(), idle_.pop_back();
    if (rows_.empty() && problems_.empty()) report(1, 1, "no action in this file");
    throw_problems();
    find_shape();
    throw_problems();
    for (const ScheduleProblem& problem : schedule_problems(schedule_))
      report(problem.rank, compute_[problem.rank], problem.cell, problem.message);
    throw_problems();
    for (const CsvMistake& mistake : communication_mistakes(rows_, schedule_))
      report(mistake.rank + 1, rows_[mistake.rank].columns[mistake.index], mistake.message);
    throw_problems();
    return std::move(schedule_);
  }

 private:
  void read_line() {
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    read_row(text_.substr(0, end));
    text_.remove_prefix(std::min(end + 1, text_.size()));
  }

  void read_row(std::string_view line) {
    CsvRow& row = rows_.emplace_back();
    idle_.emplace_back();
    std::uint32_t column = 1;
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      const std::string_view text = line.substr(begin, end - begin);
      read_cell(row, text, column);
      column += static_cast<std::uint32_t>(end + 1 - begin);
      begin = end + 1;
    }
  }

  void read_cell(CsvRow& row, std::string_view text, std::uint32_t column) {
    column += static_cast<std::uint32_t>(std::min(text.find_first_not_of(" \t"), text.size()));
    const CsvCell cell = parse_csv_cell(text);
    if (!cell.mistake.empty()) report(rows_.size(), column, cell.mistake);
    if (cell.actions.empty()) idle_.back().push_back(row.actions.size());
    for (const CsvAction& action : cell.actions) {
      row.actions.push_back(action);
      row.columns.push_back(column);
    }
  }

  // How many stages and micro-batches there are, and who holds which stage, is what the cells say.
  void find_shape() {
    struct Largest {
      std::uint32_t number = 0, column = 1;
      std::size_t line = 1;
    } stage, microbatch;
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
      const CsvRow& row = rows_[rank];
      if (row.actions.empty()) report(rank + 1, 1, fmt::format("rank {} has nothing to do", rank));
      for (std::size_t i = 0; i < row.actions.size(); ++i) {
        const CsvAction& action = row.actions[i];
        if (!is_compute(action.word)) continue;
        ++count;
        if (action.stage > stage.number) stage = {action.stage, row.columns[i], rank + 1};
        if (action.microbatch > microbatch.number)
          microbatch = {action.microbatch, row.columns[i], rank + 1};
      }
    }
    // Also keeps what is reserved below in proportion to the file.
    const std::size_t stages = stage.number + 1ul, microbatches = microbatch.number + 1ul;
    if (stages * microbatches > count) {
      const Largest& suspect = stages > microbatches ? stage : microbatch;
      return report(suspect.line, suspect.column,
                    fmt::format("{} stages × {} micro-batches, by the largest numbers here, are "
                                "{} forwards, but the file has {} actions in all",
                                stages, microbatches, stages * microbatches, count));
    }
    schedule_.stages = static_cast<std::uint32_t>(stages);
    schedule_.microbatches = static_cast<std::uint32_t>(microbatches);
    place_stages();
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) fill_row(rank);
  }

  // A stage belongs to the rank that has its first action.
  void place_stages() {
    constexpr std::uint32_t nobody = ~0u;
    schedule_.rank_of.assign(schedule_.stages, nobody);
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      for (const CsvAction& action : rows_[rank].actions)
        if (is_compute(action.word) && schedule_.rank_of[action.stage] == nobody)
          schedule_.rank_of[action.stage] = static_cast<std::uint32_t>(rank);
    for (std::size_t stage = 0; stage < schedule_.stages; ++stage)
      if (schedule_.rank_of[stage] == nobody)
        report(1, 1, fmt::format("no rank has stage {} of {}", stage, schedule_.stages));
  }

  void fill_row(std::size_t rank) {
    ScheduleRow& cells = schedule_.ranks.emplace_back();
    std::vector<std::size_t>& compute = compute_.emplace_back();
    const std::vector<CsvAction>& actions = rows_[rank].actions;
    auto idle = idle_[rank].begin();
    for (std::size_t i = 0; i <= actions.size(); ++i) {
      for (; idle != idle_[rank].end() && *idle == i; ++idle) {
        cells.emplace_back();
        compute.push_back(i);
      }
      if (i == actions.size() || !is_compute(actions[i].word)) continue;
      const auto kind = static_cast<ActionKind>(actions[i].word);
      cells.push_back(Action{actions[i].stage, kind, actions[i].microbatch});
      compute.push_back(i);
    }
  }

  std::uint32_t column_of(std::size_t rank, std::size_t index) const {
    const std::vector<std::uint32_t>& columns = rows_[rank].columns;
    return index < columns.size() ? columns[index] : 1;
  }
  // Of a cell of the schedule; what is missing in a row has no cell of its own.
  void report(std::size_t rank, const std::vector<std::size_t>& compute, std::size_t cell,
              const std::string& message) {
    report(rank + 1, cell < compute.size() ? column_of(rank, compute[cell]) : 1, message);
  }
  void report(std::size_t line, std::uint32_t column, std::string message) {
    constexpr std::size_t most = 100;  // who reads more?
    if (problems_.size() < most)
      problems_.push_back({{file_, static_cast<std::uint32_t>(line), column}, std::move(message)});
  }
  void throw_problems() {
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

  std::string_view text_;  // what is left to read
  const std::string& file_;
  std::vector<CsvRow> rows_;                    // by rank, which is a line less one
  std::vector<std::vector<std::size_t>> idle_;  // by rank: the action that an idle cell is before
  std::vector<std::vector<std::size_t>> compute_;  // by rank and cell of the schedule: its action
  Schedule schedule_;
  std::vector<Problem> problems_;
};

}  // namespace

Schedule parse_schedule_csv(std::string_view text, const std::string& file) {
  return Reader(text, file).run();
}

Schedule read_schedule_csv(const std::string& file) {
  return parse_schedule_csv(read_text_file(file), file);
}

std::string write_schedule_csv(const Schedule& schedule, CsvFormat format) {
  std::string text;
  const auto add_row = [&](const auto& cells, auto spell) {
    for (std::size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : ",") + spell(cells[i]);
    text += '\n';
  };
  if (format == CsvFormat::compute_only)
    for (const ScheduleRow& row : schedule.ranks)
      add_row(row, [](const std::optional<Action>& cell) { return cell ? to_string(*cell) : ""; });
  else
    for (const std::vector<CsvAction>& row : with_communication(schedule))
      add_row(row, [](const CsvAction& action) { return to_string(action); });
  return text;
}

}  // namespace rehearse
