// Files in, with the checks that spare every parser a surprise: what cannot be a description of a
// machine is refused in one line.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

/// The whole file. Throws InputError for a missing file, a directory, more than 64 MiB.
std::string read_text_file(const std::string& file);

/// Throws InputError at the first byte that is not UTF-8, or is NUL.
void check_utf8(std::string_view text, const std::string& file);

/// A library's message in one line: breaks and control bytes become spaces, trailing dots go.
std::string one_line(std::string_view message);

}  // namespace rehearse
