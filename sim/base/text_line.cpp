// The words of a line.
#include "sim/base/text_line.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "sim/base/decimal.hpp"

namespace rehearse {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_word(char c) { return is_alphanumeric(c) || c == '.' || c == '-' || c == '+' || c == '/'; }

}  // namespace

void TextLine::skip_blanks() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

bool TextLine::at_end() {
  skip_blanks();
  return at_ == text_.size() || text_[at_] == '#';
}

bool TextLine::accept(std::string_view token) {
  skip_blanks();
  const std::string_view rest = text_.substr(at_);
  if (!rest.starts_with(token)) return false;
  const bool letters = is_alphanumeric(token.back());
  if (letters && rest.size() > token.size() && is_alphanumeric(rest[token.size()])) return false;
  last_ = at_;
  at_ += token.size();
  return true;
}

void TextLine::expect(std::string_view token) {
  if (!accept(token)) fail_here(fmt::format("expected '{}', not {}", token, next_text()));
}

void TextLine::expect_end() {
  if (!at_end()) fail_here("unexpected " + next_text());
}

std::string_view TextLine::word(std::string_view what) {
  skip_blanks();
  std::size_t end = at_;
  while (end < text_.size() && is_word(text_[end])) {
    if (text_.substr(end).starts_with("->")) break;
    ++end;
  }
  if (end == at_) fail_here(fmt::format("expected {}, not {}", what, next_text()));
  last_ = at_;
  at_ = end;
  return text_.substr(last_, end - last_);
}

std::uint64_t TextLine::integer(std::string_view what, std::uint64_t most) {
  skip_blanks();
  std::uint64_t value = 0;
  const char* const begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (end == begin) fail_here(fmt::format("expected {}, not {}", what, next_text()));
  last_ = at_;
  at_ += static_cast<std::size_t>(end - begin);
  if (error != std::errc{} || value > most) fail(fmt::format("{} may be at most {}", what, most));
  return value;
}

double TextLine::number(std::string_view what) {
  const std::string_view digits = word(what);
  double value = 0;
  const auto [end, error] = read_decimal(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value) ||
      value < 0)
    fail(fmt::format("expected {}, not '{}'", what, digits));
  return value;
}

bool TextLine::next_is_quote() {
  skip_blanks();
  return at_ < text_.size() && text_[at_] == '"';
}

std::string TextLine::quoted(std::string_view what) {
  if (!next_is_quote()) fail_here(fmt::format("expected {} in quotes, not {}", what, next_text()));
  last_ = at_++;
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] != '\\') {
      out += text_[at_++];
      continue;
    }
    const std::string_view escape = text_.substr(at_);
    unsigned value = 0;
    if (escape.starts_with("\\\"") || escape.starts_with("\\\\")) {
      out += escape[1];
      at_ += 2;
    } else if (escape.size() >= 4 && escape[1] == 'x' &&
               std::from_chars(&escape[2], &escape[2] + 2, value, 16).ptr == &escape[2] + 2) {
      out += static_cast<char>(value);
      at_ += 4;
    } else {
      fail_here("unknown escape; write \\\", \\\\ or \\xHH");
    }
  }
  if (at_ == text_.size()) fail("the quote is never closed");
  ++at_;
  return out;
}

std::string TextLine::next_text() {
  if (at_end()) return "the end of the line";
  const auto byte = static_cast<unsigned char>(text_[at_]);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("byte \\x{:02x}", byte);
  std::size_t end = at_ + 1;
  while (is_word(text_[at_]) && end < text_.size() && is_word(text_[end])) ++end;
  constexpr std::size_t longest = 40;
  return fmt::format("'{}'", text_.substr(at_, std::min(end - at_, longest)));
}

void TextLine::fail(std::string message) const {
  throw InputError({file_, number_, static_cast<std::uint32_t>(last_ + 1)}, std::move(message));
}

void TextLine::fail_here(std::string message) {
  skip_blanks();
  last_ = at_;
  fail(std::move(message));
}

}  // namespace rehearse
