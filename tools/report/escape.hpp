// Text that others wrote, made safe to stand in a picture or a page: it never becomes markup.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

/// For element content and for attributes in double quotes. Bytes that are no UTF-8, and characters
/// that XML forbids, become U+FFFD.
std::string escaped(std::string_view text);

/// A JSON string with its quotes that may stand inside <script>: no '<' stays what it is.
std::string json_quoted(std::string_view text);

}  // namespace rehearse
