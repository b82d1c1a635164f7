// Which rehearse this is.
#pragma once

#include <string_view>

namespace rehearse {

/// "0.1.0"
std::string_view version();

}  // namespace rehearse
