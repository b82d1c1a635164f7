// Elements are appended in the order of the calls, which is the order in which they are painted.
#include "tools/report/svg.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "tools/report/escape.hpp"
#include "tools/report/palette.hpp"

namespace rehearse {

// In whole hundredths: a large picture has ten thousand numbers, and writing a double takes longer
// than everything else about a box.
char* write_svg_number(char* at, double value) {
  // Nor is infinity a place on a page.
  const double sane = std::abs(value) < 1e15 ? value : 0;
  const auto hundredths = static_cast<std::int64_t>(std::nearbyint(sane * 100));
  const std::int64_t size = std::abs(hundredths), whole = size / 100, part = size % 100;
  if (hundredths < 0) *at++ = '-';
  at = std::to_chars(at, at + 20, whole).ptr;
  if (part == 0) return at;
  *at++ = '.';
  *at++ = static_cast<char>('0' + part / 10);
  if (part % 10 > 0) *at++ = static_cast<char>('0' + part % 10);
  return at;
}

std::string svg_number(double value) {
  std::array<char, widest_svg_number> text;
  return {text.data(), write_svg_number(text.data(), value)};
}

void add_box(std::string& path, double x, double y, double width, double height) {
  std::array<char, 5 * widest_svg_number + 6> text;
  char* at = text.data();
  const auto number = [&](char command, double value) {
    *at++ = command;
    at = write_svg_number(at, value);
  };
  number('M', x);
  number(' ', y);
  number('h', width);
  number('v', height);
  number('H', x);
  *at++ = 'z';
  path.append(text.data(), at);  // once: pieces of text cost more than what is in them
}

void Svg::end(std::string_view tag, std::string_view classes, std::string_view tip) {
  if (!classes.empty()) fmt::format_to(std::back_inserter(body_), " class=\"{}\"", classes);
  if (tip.empty()) {
    body_ += "/>\n";
    return;
  }
  fmt::format_to(std::back_inserter(body_), "><title>{}</title></{}>\n", escaped(tip), tag);
}

void Svg::rect(double x, double y, double width, double height, std::string_view classes,
               std::string_view tip) {
  fmt::format_to(std::back_inserter(body_), "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
                 svg_number(x), svg_number(y), svg_number(width), svg_number(height));
  end("rect", classes, tip);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  fmt::format_to(std::back_inserter(body_), "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"",
                 svg_number(x1), svg_number(y1), svg_number(x2), svg_number(y2));
  end("line", classes, {});
}

void Svg::circle(double x, double y, double radius, std::string_view classes,
                 std::string_view tip) {
  fmt::format_to(std::back_inserter(body_), "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"", svg_number(x),
                 svg_number(y), svg_number(radius));
  end("circle", classes, tip);
}

void Svg::path(std::string_view commands, std::string_view classes, std::string_view tip) {
  fmt::format_to(std::back_inserter(body_), "<path d=\"{}\"", commands);
  end("path", classes, tip);
}

void Svg::text(double x, double y, std::string_view classes, std::string_view words) {
  fmt::format_to(std::back_inserter(body_), "<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n",
                 svg_number(x), svg_number(y), classes, escaped(words));
}

void Svg::upward_text(double x, double y, std::string_view classes, std::string_view words) {
  fmt::format_to(std::back_inserter(body_),
                 "<text x=\"{0}\" y=\"{1}\" transform=\"rotate(-90 {0} {1})\" class=\"{2}\">{3}"
                 "</text>\n",
                 svg_number(x), svg_number(y), classes, escaped(words));
}

void Svg::open(std::string_view attributes) {
  fmt::format_to(std::back_inserter(body_), "<g {}>\n", attributes);
}

void Svg::close() { body_ += "</g>\n"; }

std::string Svg::document(std::string_view title, std::string_view description) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n<style>{4}</style>\n"
      "<rect width=\"100%\" height=\"100%\" class=\"bg\"/>\n{5}</svg>\n",
      svg_number(width_), svg_number(height_), escaped(title), escaped(description), figure_css(),
      body_);
}

std::string fitted(std::string_view words, double pixels) {
  const auto most = static_cast<std::size_t>(std::max(1.0, pixels / 6.6));
  std::size_t characters = 0, cut = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if ((static_cast<unsigned char>(words[i]) & 0xC0) == 0x80) continue;
    if (characters + 1 == most) cut = i;
    if (++characters > most) return std::string{words.substr(0, cut)} + "…";
  }
  return std::string{words};
}

}  // namespace rehearse
