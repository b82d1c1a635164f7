// Comments carry what people ask and the simulator does not.
#include "tools/measure/profile.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <thread>

#include "sim/engine/explain.hpp"

namespace rehearse {

double Profile::mean_error() const {
  double sum = 0;
  for (const ProfileRow& row : rows) sum += std::abs(row.error());
  if (rows.empty()) return 0;
  // People read it: a tenth of a percent says enough.
  return std::min(10.0, std::round(1000 * sum / static_cast<double>(rows.size())) / 1000);
}

std::string profile_text(Profile profile) {
  double worst = 0;
  const ProfileRow* worst_row = nullptr;
  for (const ProfileRow& row : profile.rows) {
    if (std::abs(row.error()) < worst) continue;
    worst = std::abs(row.error());
    worst_row = &row;
  }
  if (!profile.rows.empty()) profile.calibration.error = profile.mean_error();
  std::string text =
      "# A calibration profile; readable and editable. `predict` takes it as\n"
      "# `calibration = \"FILE\"` in a scenario or --calibration FILE.\n";
  for (const std::string& note : profile.notes) text += fmt::format("# {}\n", note);
  text += to_toml(profile.calibration);
  if (profile.rows.empty()) return text;
  text +=
      fmt::format("\n# Residuals: mean error {:.1f} %, worst {:.1f} % ({}).\n",
                  100 * profile.calibration.error, 100 * worst, worst_row ? worst_row->what : "");
  text += fmt::format("# {:<44} {:>12} {:>12} {:>8}\n", "what", "measured", "modelled", "error");
  for (const ProfileRow& row : profile.rows)
    text += fmt::format("# {:<44} {:>12} {:>12} {:>+7.1f}%\n", row.what, readable(row.measured),
                        readable(row.modelled), 100 * row.error());
  return text;
}

std::string describe_this_machine() {
  std::ifstream file("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) {
      model = line.substr(std::min(line.find(": ") + 2, line.size()));
      break;
    }
  utsname system{};
  ::uname(&system);
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  ::gmtime_r(&now, &day);
  return fmt::format("{}, {} processors, {} {}, {:04}-{:02}-{:02}", model,
                     std::thread::hardware_concurrency(), system.sysname, system.release,
                     day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

}  // namespace rehearse
