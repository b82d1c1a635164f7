// What the lab's page is told, asked natively: the same C++ that it carries as WebAssembly.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/lab/answer.hpp"
#include "tools/teach/teach_runs.hpp"
#include "tools/teach/teach_sheet.hpp"

namespace rehearse::lab_test {
namespace {

using Json = nlohmann::json;

Json ask(const Json& question) { return Json::parse(lab_answer(question.dump())); }

TEST(LabAnswer, ListsAndShowsEveryLesson) {
  const std::vector<Lesson> lessons = all_lessons();
  const Json list = ask({{"ask", "lessons"}})["lessons"];
  ASSERT_EQ(list.size(), lessons.size());
  for (const Json& one : list) {
    const Json lesson = ask({{"ask", "lesson"}, {"name", one["name"]}});
    EXPECT_FALSE(lesson.contains("errors")) << lesson.dump();
    EXPECT_FALSE(lesson["question"].empty());
    EXPECT_FALSE(lesson["controls"].empty()) << one["name"];
  }
}

// Where a control stands at first must be where the scenario is, or the first touch jumps.
TEST(LabAnswer, ControlsBeginWhereTheScenarioIs) {
  for (const Lesson& lesson : all_lessons()) {
    Predictors predictors;
    const Json shown = ask({{"ask", "lesson"}, {"name", lesson.name}});
    const LessonRun plain = run_lesson(lesson.scenario, lesson.scenario_file, {}, predictors);
    for (const Json& control : shown["controls"]) {
      const std::string set =
          control["key"].get<std::string>() + "=" + control["now"].get<std::string>();
      const LessonRun run = run_lesson(lesson.scenario, lesson.scenario_file, {set}, predictors);
      EXPECT_EQ(run.told.step, plain.told.step) << lesson.name << ": " << set;
    }
  }
}

TEST(LabAnswer, DrawsTheStepThatPredictTells) {
  const Lesson lesson = all_lessons()[21];
  const Json shown =
      ask({{"ask", "picture"}, {"name", lesson.name}, {"set", {"schedule=1F1B"}}, {"width", 800}});
  Predictors predictors;
  const LessonRun run =
      run_lesson(lesson.scenario, lesson.scenario_file, {"schedule=1F1B"}, predictors);
  EXPECT_EQ(shown["step_ps"], std::to_string(run.told.step.ps()));
  EXPECT_EQ(shown["picture"]["name"], "pipeline");
  EXPECT_NE(shown["picture"]["svg"].get<std::string>().find("<svg "), std::string::npos);
  // The scenario goes on to the bench as it is shown.
  const Json again = ask({{"ask", "run"}, {"toml", shown["toml"]}});
  EXPECT_EQ(again["step_ps"], shown["step_ps"]);
}

// What was asked before is remembered, and must not change what is told now.
TEST(LabAnswer, IsTheSameWhateverWasAskedBefore) {
  const Lesson lesson = all_lessons()[29];
  for (const char* nodes : {"nodes=2", "nodes=4", "nodes=2"})
    for (const char* algorithm : {"all_reduce=tree", "all_reduce=ring", "all_reduce=auto"})
      for (const char* bucket : {"bucket_size=8MB", "bucket_size=2MB", "bucket_size=8MB"}) {
        const std::vector<std::string> sets{nodes, algorithm, bucket};
        Predictors fresh;
        const LessonRun run = run_lesson(lesson.scenario, lesson.scenario_file, sets, fresh);
        const Json shown = ask({{"ask", "picture"}, {"name", lesson.name}, {"set", sets}});
        EXPECT_EQ(shown["step_ps"], std::to_string(run.told.step.ps())) << algorithm << bucket;
      }
}

TEST(LabAnswer, TellsMistakesInTheCommandLinesWords) {
  const auto first = [](const Json& question) { return ask(question)["errors"][0]; };
  const std::string toml =
      "schema = 1\n[model]\npreset = \"gpt2\"\n[cluster]\nname = \"dgx-1\"\n[training]\nmbz = 1\n";
  const Json unknown = first({{"ask", "run"}, {"toml", toml}});
  EXPECT_EQ(unknown["text"], "scenario.toml:7:1: error: unknown key 'mbz'; did you mean 'mbs'?");
  EXPECT_EQ(unknown["line"], 7);
  EXPECT_EQ(first({{"ask", "guess"}, {"name", "17_ring"}, {"guess", "x"}})["text"],
            "error: 'x' is no guess: type a number of ms");
  EXPECT_EQ(first({{"ask", "lesson"}, {"name", "<b>"}})["text"], "error: there is no lesson '<b>'");
  EXPECT_EQ(first({{"ask", "what"}})["text"], "error: unknown question 'what'");
  EXPECT_EQ(Json::parse(lab_answer("{"))["errors"][0]["text"], "error: the question is no JSON");
  const std::string script = "<script>alert(1)</script>";
  const Json drawn =
      ask({{"ask", "picture"}, {"name", "17_ring"}, {"set", {"title=\"" + script + "\""}}});
  EXPECT_EQ(drawn["title"], script);  // the page sets it as text
  EXPECT_EQ(drawn["picture"]["svg"].get<std::string>().find("<script"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::lab_test
