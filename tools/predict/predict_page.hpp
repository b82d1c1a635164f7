// What `rehearse predict --report` writes: a page with every figure of the step.
#pragma once

#include <string>

#include "tools/predict/predict_report.hpp"
#include "tools/predict/server_summary.hpp"

namespace rehearse {

std::string predict_page(const PredictReport& report);
/// Of a run with parameter servers.
std::string server_page(const ServerTold& told);

}  // namespace rehearse
