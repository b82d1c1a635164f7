// A writer of SVG text, and nothing else: no files, no clock, the same bytes for the same calls.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

/// Two decimals at most, without zeros behind: "12.5".
std::string svg_number(double value);
/// The same where the characters shall go, and where they end.
char* write_svg_number(char* at, double value);
inline constexpr std::size_t widest_svg_number = 24;
/// A rectangle as commands of a path, which may have many: "M1 2h3v4H1z".
void add_box(std::string& path, double x, double y, double width, double height);

/// Classes are ours; every other text may come from a file and is escaped here. Coordinates are
/// pixels of a picture that is as wide as it says and scales with its frame.
class Svg {
 public:
  Svg(double width, double height) : width_{width}, height_{height} {}

  /// `tip` is what a reader sees when the pointer is on it; empty: nothing.
  void rect(double x, double y, double width, double height, std::string_view classes,
            std::string_view tip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view classes);
  void circle(double x, double y, double radius, std::string_view classes,
              std::string_view tip = {});
  void path(std::string_view commands, std::string_view classes, std::string_view tip = {});
  void text(double x, double y, std::string_view classes, std::string_view words);
  /// Rotated to read upwards, around its own place.
  void upward_text(double x, double y, std::string_view classes, std::string_view words);
  /// Everything until close() belongs together; `attributes` are ours, as written.
  void open(std::string_view attributes);
  void close();

  double width() const { return width_; }
  double height() const { return height_; }
  /// The whole document, with its style; `title` and `description` are read to those who do not
  /// see it.
  std::string document(std::string_view title, std::string_view description) const;

 private:
  void end(std::string_view tag, std::string_view classes, std::string_view tip);

  double width_, height_;
  std::string body_;
};

/// Cut to about `pixels` at 12 px a line, with an ellipsis; counts characters, not bytes.
std::string fitted(std::string_view words, double pixels);

}  // namespace rehearse
