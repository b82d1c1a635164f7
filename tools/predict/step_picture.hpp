// A pipeline as everybody draws it, in characters: a row for each pipeline rank, time to the right.
//
//   rank 0 │0··1··2··3··            0▒▒▒▒▒1▒▒▒▒▒2▒▒▒▒▒3▒▒▒▒▒│    0·· forward of micro-batch 0
//   rank 1 │   0··1··2··3··   0▒▒▒▒▒1▒▒▒▒▒2▒▒▒▒▒3▒▒▒▒▒      │    0▒▒ its backward, blank: idle
#pragma once

#include <string>

#include "sim/program/timeline.hpp"
#include "strategies/lowering/step_program.hpp"

namespace rehearse {

/// At most `columns` wide; empty where there is no pipeline, or it has too many ranks to look at.
std::string pipeline_picture(const StepProgram& step, const Timeline& timeline,
                             std::size_t columns);

}  // namespace rehearse
