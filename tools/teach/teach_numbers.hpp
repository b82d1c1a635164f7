// Numbers that a lesson says without a placeholder: in words ("eight times", "half of") and in
// formulas ("2 (n - 1)"). Nobody evaluates those, so each must be one that the lesson answers for:
// under [says] with what it is of the run, under [plain] with why no run could change it, or, in a
// formula, as a number of the values that stand beside it.
#pragma once

#include <string_view>
#include <vector>

#include "tools/teach/teach_lesson.hpp"
#include "topology/files/fields.hpp"

namespace rehearse {

struct SaidNumber {
  std::size_t begin = 0, end = 0;  // where in the text
  double value = 0;
};

/// "eight" is 8, "twice" 2, "half" 0.5, "thirty-two" 32; "one", "once" and "first" are none, as
/// they mostly do not count.
std::vector<SaidNumber> numbers_in_words(std::string_view text);

/// "2" and "14" of "2 (n - 1) × 14 B"; neither those of names (1F1B, fp32) nor a source's year.
std::vector<SaidNumber> numbers_in_formula(std::string_view text);

/// A problem for each number that the lesson does not answer for, and for each that it answers for
/// in vain.
void check_numbers(const Lesson& lesson, Problems& problems);

}  // namespace rehearse
