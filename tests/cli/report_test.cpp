// --report of every command: one whole file, the same bytes again, nothing of a user's as markup.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/places.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::report_test {
namespace {

namespace fs = std::filesystem;
const std::string scenarios = REHEARSE_SOURCE_DIR "/scenarios/";

class Report : public testing::Test {
 protected:
  Report() {
    folder_ =
        fs::temp_directory_path() / ("report_test_" + std::to_string(::getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  ~Report() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(name, std::ios::binary).rdbuf();
    return text.str();
  }
  std::string page(const std::string& command, const std::string& name = "page.html") const {
    const Outcome outcome = shell("$R " + command + " --quiet --report " + file(name));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    const std::string text = read(file(name));
    expect_whole(text);
    return text;
  }
  static void expect_whole(const std::string& text) {
    EXPECT_TRUE(text.starts_with("<!doctype html>\n"));
    EXPECT_TRUE(text.ends_with("</html>\n"));
    EXPECT_NE(text.find("<svg "), std::string::npos);
    // Nothing from elsewhere: the only addresses are the name of SVG.
    for (std::size_t at = text.find("://"); at != text.npos; at = text.find("://", at + 3))
      EXPECT_EQ(text.substr(at - 4, 26), "http://www.w3.org/2000/svg");
  }

  fs::path folder_;
};

TEST_F(Report, OfAPredictionHasEveryFigureAndIsTheSameAgain) {
  const std::string command = "predict " + scenarios + "zero-bubble.toml --no-advice";
  const std::string text = page(command);
  for (const char* figure : {"breakdown", "pipeline", "timeline", "memory", "roofline", "topology"})
    EXPECT_NE(text.find("id=\"figure-" + std::string{figure} + "\""), std::string::npos) << figure;
  EXPECT_EQ(page(command, "again.html"), text);
}

TEST_F(Report, OfOtherCommands) {
  EXPECT_NE(page("predict " + scenarios + "one-server-bottleneck.toml").find("figure-timeline"),
            std::string::npos);
  EXPECT_NE(
      page("sweep " + scenarios + "resnet50-ddp.toml --axis nodes=1,2").find("figure-scaling"),
      std::string::npos);
  const std::string bench = page("bench all_reduce --cluster ring-8 -b 1M -e 4M");
  EXPECT_NE(bench.find("figure-bandwidth"), std::string::npos);
  EXPECT_NE(bench.find("figure-topology"), std::string::npos);
  EXPECT_NE(page("accuracy " + scenarios + "published/kernels.csv").find("figure-scatter-0"),
            std::string::npos);
}

TEST_F(Report, OfAThousandGpusIsSmall) {
  const std::string text = page("predict " + scenarios + "gpt3-175b.toml --no-advice");
  EXPECT_LT(text.size(), 5'000'000u);
  EXPECT_GT(text.size(), 300'000u);
}

TEST_F(Report, GoesToStandardOutputAlone) {
  const std::string command = "$R predict " + scenarios + "zero-bubble.toml --no-advice --quiet";
  const Outcome outcome = shell(command + " --report -");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.text.starts_with("<!doctype html>\n"));
  const Outcome both = shell(command + " --report - --json -");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_EQ(both.text,
            "error: standard output (-) is for one of --json, --csv, --trace, --report\n");
}

TEST_F(Report, IsWrittenWholeOrNotAtAll) {
  const Outcome outcome = shell("$R predict " + scenarios + "zero-bubble.toml --quiet --report " +
                                file("none/page.html"));
  EXPECT_EQ(outcome.exit_code, 3) << outcome.text;
  std::ofstream(file("page.html")) << "before";
  const Outcome mistake =
      shell("$R predict " + scenarios + "zero-bubble.toml --set tp=3 --quiet --report " +
            file("page.html"));
  EXPECT_EQ(mistake.exit_code, 2);
  EXPECT_EQ(read(file("page.html")), "before");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 1);
}

TEST_F(Report, NamesFromFilesStayText) {
  std::string toml = read(scenarios + "pipeline-bubble.toml");
  const std::size_t begin = toml.find("title = "), end = toml.find('\n', begin);
  ASSERT_NE(begin, std::string::npos);
  toml.replace(begin, end - begin, R"(title = "</title><script>alert(1)</script>")");
  std::ofstream(file("evil.toml")) << toml;
  const std::string text = page("predict " + file("evil.toml") + " --no-advice");
  EXPECT_EQ(text.find("<script>alert"), std::string::npos);
  EXPECT_NE(text.find("&lt;/title&gt;&lt;script&gt;alert(1)"), std::string::npos);
}

TEST_F(Report, TracesOfEachRankGoIntoAFolder) {
  const Outcome outcome = shell("$R predict " + scenarios +
                                "zero-bubble.toml --no-advice --quiet --trace-ranks 0,2 "
                                "--trace-dir " +
                                file("traces") + " && gzip -dc " + file("traces") +
                                "/rank_2.json.gz | grep -c '\"rank\": 2'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(fs::exists(file("traces/rank_0.json.gz")));
  EXPECT_FALSE(fs::exists(file("traces/rank_1.json.gz")));
}

}  // namespace
}  // namespace rehearse::report_test
