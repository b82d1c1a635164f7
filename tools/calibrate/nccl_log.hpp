// What nccl-tests wrote, as text or with -J as JSON: sizes and times. Our own `bench` output, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace rehearse {

struct NcclRow {
  Bytes size;
  Seconds time;  // out of place, or in place where there is no other
};

struct NcclLog {
  std::string version;  // as the log says it; empty: it does not
  std::vector<NcclRow> rows;
};

/// Throws InputError, with the line, for a row that is none, and for a log without rows.
NcclLog parse_nccl_log(std::string_view text, const std::string& file);

}  // namespace rehearse
