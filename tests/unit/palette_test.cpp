// Colours can be told from their ground, and text on them can be read, in light and in dark.
#include "tools/report/palette.hpp"

#include <gtest/gtest.h>

#include <set>

namespace rehearse::palette_test {
namespace {

TEST(Palette, ContrastIsThatOfWcag) {
  EXPECT_DOUBLE_EQ(contrast("#ffffff", "#000000"), 21);
  EXPECT_DOUBLE_EQ(contrast("#123456", "#123456"), 1);
  EXPECT_NEAR(contrast("#777777", "#ffffff"), 4.48, 0.005);  // the standard's well-known near miss
}

TEST(Palette, FillsStandOutAndTextCanBeRead) {
  ASSERT_EQ(paints().size(), paint_count);
  std::set<std::string_view> names;
  for (const PaintColours& paint : paints()) {
    SCOPED_TRACE(paint.name);
    EXPECT_TRUE(names.insert(paint.name).second);
    EXPECT_GE(contrast(paint.light, light_ground().ground), 3);
    EXPECT_GE(contrast(paint.dark, dark_ground().ground), 3);
    EXPECT_GE(contrast(paint.light, paint.light_text), 4.5);
    EXPECT_GE(contrast(paint.dark, paint.dark_text), 4.5);
  }
}

TEST(Palette, WordsAndLinesCanBeRead) {
  for (const GroundColours& ground : {light_ground(), dark_ground()}) {
    EXPECT_GE(contrast(ground.text, ground.ground), 7);
    EXPECT_GE(contrast(ground.muted, ground.ground), 4.5);
    EXPECT_GE(contrast(ground.line, ground.ground), 3);
  }
}

TEST(Palette, ColoursAreThoseThatPeopleKnow) {
  EXPECT_EQ(paint_of(ActionKind::forward, false), Paint::forward);
  EXPECT_EQ(paint_of(ActionKind::backward_weight, true), Paint::backward_weight_odd);
  EXPECT_EQ(paint_of(Phase::backward, false), Paint::backward);
  EXPECT_EQ(paint_of(Phase::gradients, true), Paint::communication);
  EXPECT_EQ(load_paint(0), Paint::load_none);
  EXPECT_EQ(load_paint(0.76), Paint::load_high);
}

}  // namespace
}  // namespace rehearse::palette_test
