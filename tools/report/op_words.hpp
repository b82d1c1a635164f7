// Ops in words, for tips and tables: what one is, and what it waited for.
#pragma once

#include <string>

#include "sim/program/timeline.hpp"
#include "strategies/lowering/step_program.hpp"

namespace rehearse {

/// "tp", "dp" …
std::string_view short_name(Dimension dimension);
/// "2F3", PyTorch's notation; empty for what belongs to no micro-batch.
std::string action_text(const OpTag& tag);
/// "mlp up of 2F3", "all_reduce of gradients".
std::string op_words(const StepProgram& step, OpId op);
/// "waited for all_reduce of gradients" or "its stream was busy with …"; empty: it began at once.
std::string wait_words(const StepProgram& step, const Timeline& timeline, OpId op);
/// The same for a program that is no step: labels only.
std::string wait_words(const Program& program, const Timeline& timeline, OpId op);

}  // namespace rehearse
