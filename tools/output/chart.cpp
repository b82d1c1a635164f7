// Characters are counted as UTF-8 begins them; everything drawn here is one column wide.
#include "tools/output/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rehearse {

std::string bar(double part, std::size_t width) {
  static constexpr std::string_view eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto units = static_cast<std::size_t>(
      std::lround(std::clamp(part, 0.0, 1.0) * 8 * static_cast<double>(width)));
  std::string text;
  for (std::size_t i = 0; i < units / 8; ++i) text += "█";
  text += eighths[units % 8];
  return text;
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t sign = number < 0;
  for (std::size_t at = text.size(); at > 3 + sign; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string grouped(double number, int decimals) {
  const std::string text = fmt::format("{:.{}f}", number, decimals);
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string whole = text.substr(0, point);
  const std::size_t sign = whole.starts_with('-');
  for (std::size_t at = whole.size(); at > 3 + sign; at -= 3) whole.insert(at - 3, ",");
  return whole + text.substr(point);
}

std::string counted_noun(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(static_cast<std::int64_t>(count)), noun,
                     count == 1 ? "" : "s");
}

std::size_t column_count(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string padded(std::string_view text, std::size_t width) {
  std::string out;
  std::size_t columns = 0;
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (begins && columns == width) break;
    columns += begins;
    out += c;
  }
  out.append(width - columns, ' ');
  return out;
}

}  // namespace rehearse
