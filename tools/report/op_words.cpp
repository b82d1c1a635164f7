// The words of ops come from labels and tags; nothing is looked up elsewhere.
#include "tools/report/op_words.hpp"

#include <fmt/format.h>

namespace rehearse {

namespace {

// A marker only joins edges: what it waited for is the answer.
OpId cause_of(const Program& program, const Timeline& timeline, OpId op) {
  OpId cause = timeline.spans[index(op)].blocker;
  for (int hops = 0; cause != no_op && program[cause].kind == WorkKind::marker && hops < 16; ++hops)
    cause = timeline.spans[index(cause)].blocker;
  return cause;
}

std::string told(Wait wait, const std::string& cause) {
  return wait == Wait::stream ? "its stream was busy with " + cause : "waited for " + cause;
}

}  // namespace

std::string_view short_name(Dimension dimension) {
  switch (dimension) {
    case Dimension::tensor:
      return "tp";
    case Dimension::context:
      return "cp";
    case Dimension::expert:
      return "ep";
    case Dimension::pipeline:
      return "pp";
    case Dimension::data:
      return "dp";
  }
  return "";
}

std::string action_text(const OpTag& tag) {
  char letter = 0;
  switch (tag.phase) {
    case Phase::forward:
      letter = 'F';
      break;
    case Phase::recompute:
    case Phase::backward:
      letter = 'B';
      break;
    case Phase::backward_input:
      letter = 'I';
      break;
    case Phase::backward_weight:
      letter = 'W';
      break;
    default:
      return {};
  }
  return fmt::format("{}{}{}", tag.stage, letter, tag.microbatch);
}

std::string op_words(const StepProgram& step, OpId op) {
  const OpTag& tag = step.tags[index(op)];
  const std::string& name = step.program.names()[step.program[op].label.name];
  const std::string action = action_text(tag);
  if (!action.empty()) return fmt::format("{} of {}", name, action);
  if (tag.phase == Phase::hand_over)
    return fmt::format("{} of micro-batch {} from stage {}", name, tag.microbatch, tag.stage);
  return fmt::format("{} ({})", name, to_string(tag.phase));
}

std::string wait_words(const StepProgram& step, const Timeline& timeline, OpId op) {
  const OpId cause = cause_of(step.program, timeline, op);
  if (cause == no_op) return {};
  const Wait wait = wait_of(step.program, timeline, op);
  const std::string where = step.program[cause].rank == step.program[op].rank
                                ? ""
                                : fmt::format(", rank {}", index(step.program[cause].rank));
  return told(wait, op_words(step, cause) + where);
}

std::string wait_words(const Program& program, const Timeline& timeline, OpId op) {
  const OpId cause = cause_of(program, timeline, op);
  if (cause == no_op) return {};
  const Wait wait = wait_of(program, timeline, op);
  const std::string where = program[cause].rank == program[op].rank
                                ? ""
                                : fmt::format(", rank {}", index(program[cause].rank));
  return told(wait, program.label(cause) + where);
}

}  // namespace rehearse
