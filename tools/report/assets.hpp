// The style and script of pages: files beside this one that travel inside the binary, in a source
// that the build makes (CMakeLists.txt, embed).
#pragma once

#include <span>
#include <string_view>

namespace rehearse {

struct Asset {
  std::string_view name, text;  // its file's name without the ending
};
std::span<const Asset> report_assets();

}  // namespace rehearse
