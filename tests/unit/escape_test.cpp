// Text from a file never becomes markup, and what is no text becomes U+FFFD.
#include "tools/report/escape.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/report/svg.hpp"

namespace rehearse::escape_test {
namespace {

TEST(Escape, MarkupIsText) {
  EXPECT_EQ(escaped("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(escaped("</title><script>"), "&lt;/title&gt;&lt;script&gt;");
  EXPECT_EQ(escaped("größer 模型 🚀"), "größer 模型 🚀");
}

TEST(Escape, WhatIsNoTextIsReplaced) {
  const std::string bad = "\xEF\xBF\xBD";
  using namespace std::string_literals;
  EXPECT_EQ(escaped("a\0b\x1b"s), "a" + bad + "b" + bad);
  EXPECT_EQ(escaped("\xff"), bad);
  EXPECT_EQ(escaped("\xc0\xaf"), bad + bad);                 // '/' in two bytes
  EXPECT_EQ(escaped("\xed\xa0\x80"), bad + bad + bad);       // half a pair
  EXPECT_EQ(escaped("\xe2\x82"), bad + bad);                 // cut off
  EXPECT_EQ(escaped("\xef\xbf\xbf"), bad);                   // U+FFFF
  EXPECT_EQ(escaped("\xc2\x85"), bad);                       // a control character of Latin-1
  EXPECT_EQ(escaped("\xf4\x90\x80\x80").substr(0, 3), bad);  // beyond Unicode
  EXPECT_EQ(escaped("a\tb\n"), "a\tb\n");
}

TEST(Escape, JsonReadsBackAndCannotEndAScript) {
  for (const std::string text : {"</script><!--", "a\"b\\c\n\t", "größer 🚀 'x'", "&amp;"}) {
    const std::string json = json_quoted(text);
    EXPECT_EQ(json.find('<'), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), text);
  }
}

TEST(Svg, EverythingThatIsSaidIsEscaped) {
  const std::string evil = "\"><script>alert(1)</script>";
  Svg svg(10, 10);
  svg.rect(0, 0, 1, 1, "pF", evil);
  svg.circle(0, 0, 1, "pF", evil);
  svg.path("M0 0", "pF", evil);
  svg.text(0, 0, "tx", evil);
  svg.upward_text(0, 0, "tx", evil);
  const std::string document = svg.document(evil, evil);
  EXPECT_EQ(document.find("<script"), std::string::npos);
  EXPECT_EQ(document.find("\"><s"), std::string::npos);
}

TEST(Svg, NumbersAreShort) {
  EXPECT_EQ(svg_number(12), "12");
  EXPECT_EQ(svg_number(12.5), "12.5");
  EXPECT_EQ(svg_number(1.0 / 3), "0.33");
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(svg_number(100), "100");
}

TEST(Svg, TextIsCutByCharacters) {
  EXPECT_EQ(fitted("short", 100), "short");
  EXPECT_EQ(fitted("äöüäöüäöü", 33), "äöüä…");
}

}  // namespace
}  // namespace rehearse::escape_test
