// One pass over characters, not bytes: what is no character is replaced before anything else.
#include "tools/report/escape.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace rehearse {

namespace {

constexpr std::uint32_t replacement = 0xFFFD;

// The character that begins at `at`, which is moved behind it; one byte where it is none.
std::uint32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  if (first < 0xC2 || first > 0xF4) return replacement;
  std::uint32_t code = first & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) {
    if (at + static_cast<std::size_t>(i) >= text.size()) return replacement;
    const std::uint8_t next = byte(at + static_cast<std::size_t>(i));
    if ((next & 0xC0) != 0x80) return replacement;
    code = code << 6 | (next & 0x3F);
  }
  constexpr std::uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  if (code < least[more] || code > 0x10FFFF || is_surrogate) return replacement;
  at += static_cast<std::size_t>(more);
  return code;
}

// XML 1.0 has no control characters but these three, and neither U+FFFE nor U+FFFF.
bool is_forbidden(std::uint32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xFFFE || code == 0xFFFF;
}

template <class Escape>
std::string mapped(std::string_view text, Escape&& escape) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t code = next_character(text, at);
    if (code == replacement || is_forbidden(code))
      out += "\xEF\xBF\xBD";
    else if (code >= 0x80 || !escape(static_cast<char>(code), out))
      out += text.substr(begin, at - begin);
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) {
  return mapped(text, [](char c, std::string& out) {
    switch (c) {
      case '&':
        out += "&amp;";
        return true;
      case '<':
        out += "&lt;";
        return true;
      case '>':
        out += "&gt;";
        return true;
      case '"':
        out += "&quot;";
        return true;
      case '\'':
        out += "&#39;";
        return true;
      default:
        return false;
    }
  });
}

std::string json_quoted(std::string_view text) {
  return '"' +
         mapped(text,
                [](char c, std::string& out) {
                  if (c == '"' || c == '\\') {
                    out += '\\';
                    return false;
                  }
                  // A comment or an end of script would need '<'; '>' and '&' only for readers of
                  // the source.
                  if (c >= 0x20 && c != '<' && c != '>' && c != '&') return false;
                  out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
                  return true;
                }) +
         '"';
}

}  // namespace rehearse
