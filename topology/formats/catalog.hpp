// The published machines of topology/catalog/*.toml, carried inside the binary.
#pragma once

#include <span>
#include <string_view>

namespace rehearse {

struct CatalogEntry {
  std::string_view name;  // "dgx-h100"
  std::string_view toml;
};

/// All entries, by name. Defined in a source that CMake writes from the files.
std::span<const CatalogEntry> catalog();

}  // namespace rehearse
