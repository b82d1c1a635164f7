// GoogleTest names a lesson by its name.
#pragma once

#include <ostream>

#include "tools/teach/teach_lesson.hpp"

namespace rehearse {

inline void PrintTo(const Lesson& lesson, std::ostream* out) { *out << lesson.name; }

}  // namespace rehearse
