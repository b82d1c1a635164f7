// Runs the table: every broken file gives exactly its message, all mistakes at once.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tests/bad_input/cases.hpp"
#include "tests/bad_input/folder.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::bad_input::cluster_files_test {
namespace {

class ClusterFiles : public testing::TestWithParam<Case> {};

TEST_P(ClusterFiles, GiveExactlyThisMessage) {
  const Case& broken = GetParam();
  const Folder folder{broken};
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
}  // namespace rehearse::bad_input::cluster_files_test
