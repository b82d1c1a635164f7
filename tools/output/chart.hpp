// Small drawings and numbers for a terminal.
#pragma once

#include <cstdint>
#include <string>

namespace rehearse {

/// `part` of 1 as a bar of at most `width` characters, to an eighth of one.
std::string bar(double part, std::size_t width);
/// "1,536"
std::string grouped(std::int64_t number);
/// "1,536.25"
std::string grouped(double number, int decimals);
/// "rank", "ranks"
std::string counted_noun(std::size_t count, std::string_view noun);
/// Cut and filled to `width` characters, of which each takes one column.
std::string padded(std::string_view text, std::size_t width);
std::size_t column_count(std::string_view utf8);

}  // namespace rehearse
