// `rehearse teach` and `rehearse lab` as a learner's shell sees them.
#include "tests/support/shell.hpp"

namespace rehearse::teach_test {
namespace {

/// With a state folder of its own, which is gone afterwards.
Outcome teach(const std::string& line) {
  return shell("S=$(mktemp -d); export XDG_STATE_HOME=\"$S\"; " + line +
               "; code=$?; rm -rf \"$S\"; " + "( exit $code )");
}

bool has(const Outcome& outcome, const std::string& words) {
  return outcome.text.find(words) != std::string::npos;
}

TEST(Teach, AsksGradesAndRevealsInAPipe) {
  const Outcome outcome = teach("echo '5.5 ms' | $R teach ring");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(has(outcome, "Lesson 17: ")) << outcome.text;
  EXPECT_TRUE(has(outcome, "Your guess in ms")) << outcome.text;
  EXPECT_TRUE(has(outcome, "You said 5.5 ms; the run says ")) << outcome.text;
  EXPECT_TRUE(has(outcome, "T = 2 (n - 1)")) << outcome.text;
}

TEST(Teach, TakesAGuessFromTheCommandLine) {
  const Outcome outcome = teach("$R teach 17 --answer 5.1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(has(outcome, "Right. You said 5.1 ms")) << outcome.text;
}

TEST(Teach, ShowsTheAnswerToWhoDoesNotGuess) {
  const Outcome outcome = teach("$R teach 22 </dev/null");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(has(outcome, "The run says 27.8 %.")) << outcome.text;
  EXPECT_TRUE(has(outcome, "rank 3  │")) << outcome.text;
}

TEST(Teach, RemembersWhatIsDone) {
  const Outcome outcome = teach(
      "$R teach 01 --answer 1 >/dev/null; $R teach 17 --answer 5.1 >/dev/null; $R teach --list; "
      "$R teach </dev/null | head -1");
  EXPECT_TRUE(has(outcome, "✓ 17  ")) << outcome.text;
  EXPECT_TRUE(has(outcome, "○ 01  ")) << outcome.text;
  EXPECT_TRUE(has(outcome, "· 02  ")) << outcome.text;
  EXPECT_TRUE(has(outcome, "2 of 38 done, 1 guessed right")) << outcome.text;
  EXPECT_TRUE(has(outcome, "Lesson 02: ")) << outcome.text;
}

TEST(Teach, TellsMistakesInOneLine) {
  const auto says = [](const std::string& line, const std::string& text) {
    const Outcome outcome = teach(line);
    EXPECT_EQ(outcome.exit_code, 2) << line;
    EXPECT_EQ(outcome.text, text) << line;
  };
  says("$R teach rign", "error: there is no lesson 'rign'; did you mean 'ring'?\n");
  says("$R teach 99", "error: there is no lesson '99'; see 'rehearse teach --list'\n");
  says("$R teach 17 --answer much", "error: 'much' is no guess: type a number of ms\n");
  says("$R teach 17 --answer 3 --set gpuz=4", "--set gpuz=4: error: unknown key 'gpuz'\n");
}

TEST(Teach, LeavesAFileAloneThatIsNotItsOwn) {
  const Outcome outcome = teach(
      "mkdir \"$S/rehearse\"; echo '[' >\"$S/rehearse/lessons.json\"; $R teach 17 --answer 5; "
      "code=$?; cat \"$S/rehearse/lessons.json\"; ( exit $code )");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.text;
  EXPECT_TRUE(has(outcome,
                  "lessons.json: error: this is not what teach writes; delete it to begin "
                  "anew\n[\n"))
      << outcome.text;
}

TEST(Teach, GoesOnWhereNothingCanBeRemembered) {
  const Outcome outcome = shell("XDG_STATE_HOME=/dev/null $R teach 17 --answer 5.1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(has(outcome, "note: this lesson is not remembered: ")) << outcome.text;
}

TEST(Lab, SaysWhatIsMissing) {
  expect_outcome("$R lab --folder /nonexistent", 77,
                 "error: there is no page /nonexistent/index.html; 'tools/lab/build' makes it "
                 "(emscripten and esbuild)\n");
  expect_outcome("$R lab --port 70000", 2, "error: --port 70000 is not between 0 and 65535\n");
}

// On loopback, on a port that is free, for a bounded time.
TEST(Lab, ServesThePageOnLoopback) {
  const Outcome outcome = shell(R"(bash -c '
    D=$(mktemp -d); echo "<p>the page</p>" >"$D/index.html"
    '"$R"' lab --folder "$D" --port 0 >"$D/log" 2>&1 & pid=$!
    for i in $(seq 100); do grep -q "http" "$D/log" && break
      kill -0 $pid 2>/dev/null || break; sleep 0.1; done
    if grep -q "no server" "$D/log"; then echo SKIP; else
      port=$(sed "s|.*127.0.0.1:\([0-9]*\)/.*|\1|" "$D/log")
      exec 3<>/dev/tcp/127.0.0.1/$port
      printf "GET / HTTP/1.0\r\n\r\n" >&3; timeout 5 cat <&3
      exec 4<>/dev/tcp/127.0.0.1/$port
      printf "GET /../../../etc/passwd HTTP/1.0\r\n\r\n" >&4; timeout 5 cat <&4
    fi
    kill $pid 2>/dev/null; rm -rf "$D"')");
  if (has(outcome, "SKIP")) GTEST_SKIP() << "this build has no cpp-httplib";
  EXPECT_TRUE(has(outcome, "200 OK")) << outcome.text;
  EXPECT_TRUE(has(outcome, "<p>the page</p>")) << outcome.text;
  EXPECT_TRUE(has(outcome, " 40")) << outcome.text;
  EXPECT_FALSE(has(outcome, "root:")) << outcome.text;
}

}  // namespace
}  // namespace rehearse::teach_test
