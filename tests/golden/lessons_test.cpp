// Every lesson, as `rehearse teach` shows it: no figure changes unseen. `golden_tests --update`
// rewrites the texts; the difference is for review.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/lesson_names.hpp"
#include "tests/support/places.hpp"
#include "tools/teach/teach_show.hpp"

namespace rehearse::lessons_test {
namespace {

namespace fs = std::filesystem;
const fs::path folder = fs::path{REHEARSE_SOURCE_DIR} / "tests" / "golden" / "lessons";

bool updates() {
  const std::vector<std::string> words = testing::internal::GetArgvs();
  return std::find(words.begin(), words.end(), "--update") != words.end();
}

class LessonText : public testing::TestWithParam<Lesson> {};

TEST_P(LessonText, SaysWhatWasReviewed) {
  const Lesson& lesson = GetParam();
  LessonSheet sheet(lesson);
  const std::string text = lesson_opening(lesson, sheet) + "The run says " +
                           to_text(sheet.answer(), lesson.unit) + ".\n\n" +
                           lesson_reveal(lesson, sheet);
  const fs::path golden = folder / (lesson.name + ".txt");
  if (updates()) {
    fs::create_directories(folder);
    std::ofstream(golden, std::ios::binary) << text;
    return;
  }
  std::ostringstream reviewed;
  reviewed << std::ifstream(golden, std::ios::binary).rdbuf();
  EXPECT_EQ(text, reviewed.str()) << "if this is meant to be so: golden_tests --update";
}

INSTANTIATE_TEST_SUITE_P(All, LessonText, testing::ValuesIn(all_lessons()),
                         [](const testing::TestParamInfo<Lesson>& test) {
                           return "L" + test.param.name;
                         });

}  // namespace
}  // namespace rehearse::lessons_test
