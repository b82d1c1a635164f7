// What `rehearse accuracy --report` writes: predicted against measured, file by file.
#pragma once

#include <string>

#include "tools/accuracy/accuracy_report.hpp"

namespace rehearse {

std::string accuracy_page(const AccuracyReport& report);

}  // namespace rehearse
