// Runs the table: every broken file gives exactly its message, all mistakes at once.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/error.hpp"
#include "tests/bad_input/cases.hpp"
#include "topology/cluster.hpp"

namespace rehearse::bad_input {
namespace {

// A fresh folder to stand in while a case runs, so that messages show the names as users type them.
class Folder {
 public:
  Folder() : before_{std::filesystem::current_path()} {
    std::string pattern = (std::filesystem::temp_directory_path() / "rehearse-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    std::filesystem::current_path(path_);
  }
  ~Folder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

 private:
  std::filesystem::path before_, path_;
};

class ClusterFiles : public testing::TestWithParam<Case> {};

TEST_P(ClusterFiles, GiveExactlyThisMessage) {
  const Case& broken = GetParam();
  const Folder folder;
  for (const auto& [name, content] : broken.files) {
    if (name.ends_with('/'))
      std::filesystem::create_directory(name);
    else
      std::ofstream{name, std::ios::binary} << content;
  }
  try {
    load_cluster(broken.file);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), broken.message);
  }
}

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Table, ClusterFiles, testing::ValuesIn(cluster_cases()), name_of);

TEST(ClusterFileTable, IsLong) { EXPECT_GE(cluster_cases().size(), 40u); }

}  // namespace
}  // namespace rehearse::bad_input
