// The rows of a schedule file with all they say, communication too, and where it stands.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "strategies/schedules/csv_action.hpp"

namespace rehearse {

struct CsvRow {
  std::vector<CsvAction> actions;
  std::vector<std::uint32_t> columns;  // of each action in its line
};

struct CsvMistake {
  std::size_t rank = 0, index = 0;  // of the action in its row
  std::string message;
};

/// What does not fit together in the communication of rows whose compute is a schedule: sends and
/// receives without their other end or in an impossible order, parameters that are used while they
/// are not there, gradients that are reduced too early.
std::vector<CsvMistake> communication_mistakes(const std::vector<CsvRow>&, const Schedule&);

/// The rows of a schedule with the communication that PyTorch 2.15 would add.
std::vector<std::vector<CsvAction>> with_communication(const Schedule&);

}  // namespace rehearse
