// rank 0 │0F0│0F1│       │0B0    │0B1    │      boxes as wide as time, or FF..BBBB
#include "strategies/schedules/draw_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

// So wide that the longest label fits into the shortest action.
std::size_t step_width(const Schedule& schedule, const StageTimes& times) {
  std::size_t width = 1;
  for (const ScheduleRow& row : schedule.ranks)
    for (const std::optional<Action>& cell : row)
      if (cell) {
        const std::size_t steps = size(times.of(cell->kind));
        width = std::max(width, (to_string(*cell).size() + 1 + steps - 1) / steps);
      }
  return width;
}

// Bars where actions begin and end; a bar is three bytes, so it is put in last.
std::string boxes(const ScheduleRow& row, const std::vector<std::int64_t>& begin,
                  const StageTimes& times, std::size_t width, std::size_t steps) {
  std::string line(steps * width + 1, ' ');
  for (std::size_t cell = 0; cell < row.size(); ++cell) {
    if (!row[cell]) continue;
    const std::size_t from = size(begin[cell]) * width;
    line[from] = '|';
    line[from + size(times.of(row[cell]->kind)) * width] = '|';
    const std::string label = to_string(*row[cell]);
    std::copy(label.begin(), label.end(), line.begin() + static_cast<std::ptrdiff_t>(from) + 1);
  }
  std::string drawn;
  for (const char c : line.substr(0, line.find_last_not_of(' ') + 1))
    drawn += c == '|' ? std::string{"│"} : std::string{c};
  return drawn;
}

std::string letters(const ScheduleRow& row, const std::vector<std::int64_t>& begin,
                    const StageTimes& times, std::size_t steps, std::size_t columns) {
  std::string line(steps, '.');
  for (std::size_t cell = 0; cell < row.size(); ++cell)
    if (row[cell])
      std::fill_n(line.begin() + begin[cell], times.of(row[cell]->kind), letter(row[cell]->kind));
  if (line.size() <= columns) return line;
  return line.substr(0, columns - 1) + "…";
}

}  // namespace

std::string draw_schedule(const Schedule& schedule, const StageTimes& times, std::size_t columns) {
  ASSERT(times.forward > 0 && times.backward_input > 0 && times.backward_weight > 0);
  const ScheduleTimes when = step_times(schedule, times);
  ASSERT(when.complete);
  const std::size_t steps = size(when.makespan), width = step_width(schedule, times);
  const std::size_t ranks = schedule.ranks.size(), digits = std::to_string(ranks - 1).size();
  const std::size_t margin = 5 + digits + 1;
  const bool fits = margin + steps * width + 1 <= columns;
  const std::size_t room = std::max<std::size_t>(columns, margin + 10) - margin;
  std::string text;
  std::int64_t busy = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const ScheduleRow& row = schedule.ranks[rank];
    for (const std::optional<Action>& cell : row) busy += cell ? times.of(cell->kind) : 0;
    text += fmt::format("rank {:<{}} {}\n", rank, digits,
                        fits ? boxes(row, when.begin[rank], times, width, steps)
                             : letters(row, when.begin[rank], times, steps, room));
  }
  const auto cells = static_cast<double>(ranks) * static_cast<double>(steps);
  return text + fmt::format("{} steps, {:.1f} % of them idle\n", steps,
                            100 * (1 - static_cast<double>(busy) / cells));
}

}  // namespace rehearse
