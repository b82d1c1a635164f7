// Output files: whole or not at all, whatever goes wrong.
#include "tools/output/output_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/error.hpp"

namespace rehearse::output_file_test {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rehearse-output-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& path) {
    std::ifstream stream{path, std::ios::binary};
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator{folder_}, fs::directory_iterator{}));
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, AppearsOnlyWhenFinished) {
  {
    OutputFile file{at("a.json")};
    file.write("{}");
    EXPECT_FALSE(fs::exists(at("a.json")));
    file.finish();
  }
  EXPECT_EQ(read(at("a.json")), "{}");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, LeavesTheOldFileWhenTheWorkFails) {
  write_output(at("a"), "old");
  {
    OutputFile file{at("a")};
    file.write("half of the n");
  }
  EXPECT_EQ(read(at("a")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, IsReadableLikeAnyOtherFile) {
  std::ofstream{at("usual")} << "x";
  write_output(at("ours"), "x");
  EXPECT_EQ(fs::status(at("ours")).permissions(), fs::status(at("usual")).permissions());
  fs::permissions(at("ours"), fs::perms::owner_read | fs::perms::owner_write);
  write_output(at("ours"), "y");
  EXPECT_EQ(fs::status(at("ours")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OutputFileTest, FollowsALinkInsteadOfReplacingIt) {
  write_output(at("real"), "old");
  fs::create_symlink("real", at("link"));
  write_output(at("link"), "new");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(read(at("real")), "new");
}

TEST_F(OutputFileTest, CompressesByName) {
  const std::string text(100'000, 'a');
  write_output(at("a.gz"), text);
  write_output(at("b.gz"), text);
  const std::string bytes = read(at("a.gz"));
  EXPECT_LT(bytes.size(), 1000u);
  EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(bytes, read(at("b.gz"))) << "equal runs must give equal bytes";
  EXPECT_EQ(std::system(("gzip -t " + at("a.gz")).c_str()), 0);
}

std::string error_of(const std::string& path) {
  try {
    write_output(path, std::string(1 << 20, 'x'));
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "written";
}

TEST_F(OutputFileTest, SaysInOneLineWhatIsWrong) {
  EXPECT_EQ(error_of(at("no/such/folder")),
            "cannot write '" + at("no/such/folder") + "': No such file or directory");
  EXPECT_EQ(error_of(folder_.string()), "cannot write '" + folder_.string() + "': Is a directory");
  EXPECT_EQ(error_of(""), "cannot write '': No such file or directory");
  EXPECT_EQ(files(), 0u);
}

TEST_F(OutputFileTest, AFullDiskIsToldAndADeviceStaysADevice) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  EXPECT_EQ(error_of("/dev/full"), "cannot write '/dev/full': No space left on device");
  EXPECT_EQ(error_of("/dev/null"), "written");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace rehearse::output_file_test
