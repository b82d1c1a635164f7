// The [accelerator] table of cluster files and calibration profiles, in and out.
#pragma once

#include <string>
#include <string_view>

#include "topology/accelerator.hpp"
#include "topology/files/fields.hpp"

namespace rehearse {

Accelerator read_accelerator(const Value& table, Problems& problems);

/// Only the keys that say how much of the data sheet is reached.
AcceleratorChanges read_changes(Fields& fields, Problems& problems);

/// As a [[accelerator]]; what is as usual is left out.
std::string write_accelerator(const Accelerator& accelerator);

/// The keys and tables of read_changes(), below a [[accelerator]].
std::string write_changes(const AcceleratorChanges& changes);

/// A TOML basic string: quotes, backslashes and control characters are escaped.
std::string toml_quoted(std::string_view text);

}  // namespace rehearse
