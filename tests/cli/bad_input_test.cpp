// The table of broken files once more, as users meet it: through the command line.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/bad_input/cases.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::bad_input::bad_input_test {
namespace {

namespace fs = std::filesystem;

TEST(BadInput, EveryBrokenFileIsExitCode2AndItsMessage) {
  std::string pattern = (fs::temp_directory_path() / "rehearse-bad-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path root = pattern;
  std::size_t number = 0;
  std::vector<Case> all = cluster_cases();
  const std::vector<Case> scenarios = all_scenario_cases();
  all.insert(all.end(), scenarios.begin(), scenarios.end());
  for (const Case& broken : all) {
    const fs::path folder = root / std::to_string(number++);
    fs::create_directory(folder);
    for (const auto& [name, content] : broken.files) {
      if (name.ends_with('/'))
        fs::create_directory(folder / name);
      else
        std::ofstream{folder / name, std::ios::binary} << content;
    }
    SCOPED_TRACE(broken.name);
    const std::string where = "cd " + folder.string() + " && ";
    // A name is no file to validate; every command reads machines through the same door.
    const std::string command = broken.files.empty() ? "topo show " : "validate ";
    expect_outcome(where + "$R " + command + broken.file, 2, broken.message + "\n");
  }
  EXPECT_GE(number, 120u);
  fs::remove_all(root);
}

TEST(BadInput, TheTableHasWhatWasPromised) {
  const std::vector<Case> all = cluster_cases();
  for (const char* const name :
       {"unknown_key", "missing_unit", "negative_bandwidth", "unreachable_rank",
        "duplicate_device_name", "a_million_million_gpus", "truncated_xml", "wrong_encoding",
        "extends_in_a_circle", "a_directory"})
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Case& c) { return c.name == name; }))
        << name;
}

TEST(BadInput, OneCommandTellsTheMistakesOfAllFiles) {
  std::string pattern = (fs::temp_directory_path() / "rehearse-bad-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path root = pattern;
  std::string files, messages;
  for (const Case& broken : cluster_cases()) {
    if (broken.files.size() != 1 || broken.file != broken.files[0].first) continue;
    if (broken.files[0].first.ends_with('/') || broken.message.find('\n') != std::string::npos)
      continue;
    const std::string name = broken.name + fs::path(broken.file).extension().string();
    std::ofstream{root / name, std::ios::binary} << broken.files[0].second;
    files += " " + name;
    std::string message = broken.message;
    for (std::size_t at = 0; (at = message.find(broken.file, at)) != std::string::npos;
         at += name.size())
      message.replace(at, broken.file.size(), name);
    // A file that extends itself does so by the name that is inside it.
    if (broken.name == "extends_itself") message = name + ":1:11: error: no such file: 'c.toml'";
    messages += message + "\n";
  }
  expect_outcome("cd " + root.string() + " && $R validate" + files, 2, messages);
  fs::remove_all(root);
}

}  // namespace
}  // namespace rehearse::bad_input::bad_input_test
