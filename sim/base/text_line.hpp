// One line of a text form, read word by word; whatever does not fit is an InputError with its
// place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/error.hpp"

namespace rehearse {

class TextLine {
 public:
  TextLine(std::string_view text, const std::string& file, std::uint32_t number)
      : text_{text}, file_{file}, number_{number} {}

  /// True when only blanks or a comment are left.
  bool at_end();
  /// Takes `token` if it comes next; a token of letters must be a whole word.
  bool accept(std::string_view token);
  void expect(std::string_view token);
  void expect_end();

  /// Letters, digits and _ . - + / (so also "1.5us", "20GB/s", "c12").
  std::string_view word(std::string_view what);
  std::uint64_t integer(std::string_view what, std::uint64_t most);
  /// Finite and not negative.
  double number(std::string_view what);
  /// "..." with \" \\ and \xHH inside.
  std::string quoted(std::string_view what);
  bool next_is_quote();

  /// Throws, pointing at what was read last, or (`here`) at what comes next.
  [[noreturn]] void fail(std::string message) const;
  [[noreturn]] void fail_here(std::string message);

 private:
  void skip_blanks();
  std::string next_text();

  std::string_view text_;
  const std::string& file_;
  std::uint32_t number_;
  std::size_t at_ = 0, last_ = 0;  // where to go on, where the last word began
};

}  // namespace rehearse
