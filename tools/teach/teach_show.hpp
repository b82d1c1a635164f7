// A lesson on a terminal: text wrapped, formulas as they stand, pictures of characters.
#pragma once

#include <string>
#include <vector>

#include "tools/teach/teach_sheet.hpp"

namespace rehearse {

inline constexpr std::size_t lesson_columns = 78;

/// Broken at spaces; what is longer than a line stays whole.
std::string wrapped(std::string_view text, std::size_t columns);

/// Title, idea and question.
std::string lesson_opening(const Lesson& lesson, LessonSheet& sheet);
/// The picture, the text of the answer, and what else one could try.
std::string lesson_reveal(const Lesson& lesson, LessonSheet& sheet);

}  // namespace rehearse
