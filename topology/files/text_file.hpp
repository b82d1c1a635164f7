// Files in, with the checks that spare every parser a surprise: what cannot be a description of a
// machine is refused in one line.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/error.hpp"

namespace rehearse {

/// The whole file. Throws InputError for a missing file, a directory, more than 64 MiB.
std::string read_text_file(const std::string& file);

/// The whole of standard input, within the same bounds.
std::string read_standard_input();

/// A file name as seen from the file that mentions it; one from the command line stays as it is.
std::string path_beside(const std::string& name, const Place& mentioned_at);

/// Throws InputError at the first byte that is not UTF-8, or is NUL.
void check_utf8(std::string_view text, const std::string& file);

/// A library's message in one line: breaks and control bytes become spaces, trailing dots go.
std::string one_line(std::string_view message);

}  // namespace rehearse
