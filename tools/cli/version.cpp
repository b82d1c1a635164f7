// The number comes from CMakeLists.txt.
#include "tools/cli/version.hpp"

namespace rehearse {

std::string_view version() { return REHEARSE_VERSION; }

}  // namespace rehearse
